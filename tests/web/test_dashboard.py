"""The dashboard's API over a recorded run, as its own process serves it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.web.asking import ALL_DECISIONS, answers, asked, write_records

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.status import status_of
from kubetide.units.time import Instant
from kubetide.web import server
from kubetide.web.history import BUCKETS, History
from kubetide.web.server import API, ROUTES

STATIC = Path(server.__file__).parent / "static"


def test_every_route_answers_with_its_type(folder):
    """Each answer can be read as the type that the OpenAPI document names; the document names each route."""
    names = {"{kind}/{name}": "hpa/default/web"}
    answering = [route for route in ROUTES if route.answer is not None]
    paths = [route.path.replace(*next(iter(names.items()))) for route in answering]
    found = asked(folder, *paths, f"{API}/openapi.json")
    for route, (status, _, body) in zip(answering, found, strict=False):
        assert status == 200, body
        msgspec.json.decode(body, type=route.answer)
    document = json.loads(found[-1][2])
    assert set(document["paths"]) == {route.path for route in ROUTES}
    [events] = document["paths"][f"{API}/events"]["get"]["responses"]["200"]["content"]
    assert events == "text/event-stream"
    assert {"Span", "Status", "Decisions", "Explanation", "Past"} <= set(document["components"]["schemas"])


def test_the_numbers_are_those_of_the_records(folder):
    """Span and decisions count what the records hold; the status is that of `kubetide status`."""
    span, found, status = answers(folder, "span", "decisions?limit=500", "status")
    assert len(span["decisions"]["horizontal"]) == BUCKETS
    assert sum(map(sum, span["decisions"].values())) == found["found"] == len(found["decisions"]) > 3
    assert [one["at"] for one in found["decisions"]] == sorted(
        (one["at"] for one in found["decisions"]), reverse=True
    )
    assert status == json.loads(msgspec.json.encode(status_of(folder)[0]))
    ends = [list(read_records(folder, loop))[-1].now for loop in ("horizontal", "nodes")]
    assert span["end"] == "2026-03-02T00:19:50Z"
    assert max(ends) // 10**9 == 1772410790


def test_the_past_in_figures(folder):
    """Figures of one kind, of one object, until a time, of a window before it, and no more points than requested."""
    every, hpa, early, narrow, few = answers(
        folder,
        "history",
        "history?kind=hpa&name=default/web&figure=ready",
        "history?kind=cluster&figure=pods&at=00:05:00",
        "history?kind=cluster&figure=pods&at=00:05:00&window=1m",
        "history?kind=metric&name=default/web&figure=value&points=8",
    )
    assert every["kept"]
    assert {line["kind"] for line in every["lines"]} == {
        "cluster",
        "nodegroup",
        "hpa",
        "metric",
        "run",
        "service",
    }
    assert every["found"] == len(every["lines"])
    assert [(one["name"], one["figure"]) for one in hpa["lines"]] == [("default/web", "ready")]
    assert early["until"] == narrow["until"] == "2026-03-02T00:05:00Z"
    assert narrow["since"] == "2026-03-02T00:04:00Z"
    assert narrow["lines"][0]["values"][0] == early["lines"][0]["values"][-1]
    assert [one["name"] for one in few["lines"]] == ["default/web/cpu utilization"]
    assert 1 < len(few["lines"][0]["times"]) <= 8


def test_records_without_figures_say_so(folder, tmp_path):
    """Records of an older version have no figures: the answer is empty, and no error."""
    shutil.copytree(folder / "records", tmp_path / "records")
    for figures in (tmp_path / "records").glob("*.figures"):
        figures.unlink()
    (past,) = answers(tmp_path, "history")
    assert (past["kept"], past["found"], past["lines"]) == (False, 0, [])


def test_decisions_are_filtered(folder):
    """By words of the reason, by loop, by subject and by time."""
    whole, *narrow = answers(
        folder,
        "decisions?limit=500",
        "decisions?loop=nodes",
        "decisions?subject=default/web",
        "decisions?q=SCALED%20web",
        "decisions?until=00:05:00",
        "decisions?limit=1",
    )
    nodes, web, words, early, one = narrow
    assert {found["loop"] for found in nodes["decisions"]} == {"nodes"}
    assert {found["subject"] for found in web["decisions"]} == {"default/web"}
    assert words["found"] == sum("scaled" in found["text"] for found in whole["decisions"])
    assert early["found"] == sum(found["at"] <= "2026-03-02T00:05:00Z" for found in whole["decisions"])
    assert one["decisions"] == whole["decisions"][:1]


def test_decisions_are_reported_in_parts(folder):
    """Decisions of an earlier part are skipped, also where many share one second."""
    whole, *parts = answers(
        folder, "decisions?limit=500", *(f"decisions?limit=2&skip={skip}" for skip in (0, 2, 4, 500))
    )
    reported = [one for part in parts for one in part["decisions"]]
    assert reported == whole["decisions"][:6]
    assert {part["found"] for part in parts} == {whole["found"]}


def test_decisions_about_a_vpa_are_not_those_of_an_hpa_of_its_name(tmp_path):
    """A loop's decisions about an object are also those about its parts; amounts of memory have few digits."""
    scaled = Reason("Rescaled", "default/web", {"current": 2, "desired": 3})
    bounds = {"resource": "memory", "target": "442809964", "lower": "250Mi", "upper": "97656250000Ki"}
    sized = Reason("Recommended", "default/web/main", bounds)
    write_records(
        tmp_path,
        [
            Record(loop, 1, Instant(10**18), full=True, reasons=(reason,))
            for loop, reason in (("horizontal", scaled), ("recommender", sized))
        ],
    )
    history = History(tmp_path)
    found = {
        loop: [
            one.text
            for one in history.decisions(
                **{**ALL_DECISIONS, "loop": loop, "subject": "default/web"}
            ).decisions
        ]
        for loop in ("", "recommender")
    }
    assert found == {
        "": ["default/web: scaled from 2 to 3"],
        "recommender": ["default/web/main: memory: target 422Mi, from 250Mi to 90.9Ti"],
    }


def test_the_past_is_as_it_was(folder):
    """At an earlier time the status is that of the last tick before it, and explanations are of that time."""
    status, objects, why = answers(
        folder, "status?at=00:04:00", "objects?at=00:04:00", "explain/hpa/default/web?at=00:04:00"
    )
    assert status["at"] == "2026-03-02T00:04:00Z"
    assert {one["state"] for one in status["loops"]} == {"went on"}
    assert objects["hpa"] == ["default/web"]
    assert why["lines"][0] == "hpa default/web at 2026-03-02T00:04:00Z"


@pytest.mark.parametrize(
    ("path", "status", "reported"),
    [
        ("explain/hpa/default/wib", 404, "did you mean default/web?"),
        ("explain/hpa/default/web?view=nodes", 404, "a hpa has no view 'nodes'; its views are none"),
        ("explain/pod/default/web?view=node", 404, "a pod has no view 'node'; its views are nodes"),
        ("explain/cow/default/web", 404, "nothing is known of a 'cow'"),
        ("status?at=yesterday", 400, "'yesterday' is neither a time"),
        ("decisions?until=24:00", 400, "'24:00' is neither a time"),
        ("status?at=2020-01-01T00:00:00Z", 404, "the run begins at 2026-03-02T00:00:00Z"),
        ("ahead?ahead=soon", 400, "soon"),
        ("ahead?ahead=0s", 400, "not above 0"),
        ("decisions?limit=many", 400, "not a whole number"),
        ("history?window=-1h", 400, ""),
        ("history?window=0s", 400, "not above 0"),
        ("history?points=0", 400, "not from 1 to 5000"),
        ("history?points=many", 400, "not a whole number"),
        ("nothing", 404, "openapi.json lists them"),
    ],
)
def test_wrong_questions(folder, path, status, reported):
    """A question that cannot be answered says why, as JSON."""
    ((found, _, body),) = asked(folder, f"{API}/{path}")
    assert found == status
    assert reported in json.loads(body)["error"]


def test_a_folder_without_records(tmp_path):
    """An empty folder is reported, and does not end the server."""
    found = asked(tmp_path, f"{API}/span", f"{API}/status", "/")
    assert [status for status, _, _ in found] == [404, 404, 200]


def test_pages_use_the_servers_clock():
    """No page asks the browser what time it is, so a clock that is off there changes nothing."""
    code = "".join(path.read_text(encoding="utf-8") for path in STATIC.glob("*.js"))
    assert not re.search(r"Date\.now|new Date\(\)|performance\.now", code)


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--listen", "0.0.0.0:0"], "name a file with a token"),
        (["--listen", "nowhere"], "is not an address"),
        (["--out", "{tmp}/none"], "no records under"),
        (["--token-file", "{tmp}/none"], "/none cannot be read: No such file or directory; "),
    ],
)
def test_wrong_flags(folder, tmp_path, arguments, reported):
    """A wrong flag is one line and exit status 1."""
    command = [sys.executable, "-m", "kubetide", "ui", "--out", str(folder)]
    result = subprocess.run(
        [*command, *(one.format(tmp=tmp_path) for one in arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert (result.returncode, result.stdout) == (1, "")
    assert reported in result.stderr
