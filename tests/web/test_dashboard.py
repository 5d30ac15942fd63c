"""The dashboard's API over a recorded run, as its own process serves it."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest
import yarl
from tests.simulate.worlds import small

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.runtime.recording.record_tail import RecordTail
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.runtime.timing.clock import run_real
from kubetide.serving.listener import Listener
from kubetide.simulate.answers.status import status_of
from kubetide.simulate.run import run_simulation
from kubetide.units.time import Instant
from kubetide.web import server
from kubetide.web.access import OwnToken
from kubetide.web.history import BUCKETS, History
from kubetide.web.server import API, MOST_WAITING, ROUTES, Dashboard

TOKEN = "a-token-of-the-tests"
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
STATIC = Path(server.__file__).parent / "static"
ALL_DECISIONS = {"words": "", "loop": "", "subject": "", "until": "", "limit": 500}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The records of a small run."""
    out = tmp_path_factory.mktemp("run")
    run_simulation(small(), base=out, out=out, seed=3, warn=lambda _: None)
    return out


def asked(folder, *paths, headers=HEADERS, history=None):
    """Serve the folder, and return (status, headers, body) of each path."""

    async def main(clock):
        listener = Listener(Dashboard(history or History(folder), OwnToken(TOKEN), clock).app())
        await listener.listen("127.0.0.1")
        try:
            async with aiohttp.ClientSession(headers=headers) as session:
                found = []
                for path in paths:
                    url = yarl.URL(f"http://{listener.authority}{path}", encoded=True)
                    async with session.get(url, allow_redirects=False) as answer:
                        found.append((answer.status, answer.headers, await answer.text()))
                return found
        finally:
            await listener.close()

    return run_real(main)


def answers(folder, *paths):
    found = asked(folder, *(f"{API}/{path}" for path in paths))
    assert [status for status, _, _ in found] == [200] * len(paths), found
    return [json.loads(body) for _, _, body in found]


def test_every_route_answers_with_its_type(folder):
    """Each answer can be read as the type that the OpenAPI document names; the document names each route."""
    names = {"{kind}/{name}": "hpa/default/web"}
    paths = [route.path.replace(*next(iter(names.items()))) for route in ROUTES]
    found = asked(folder, *paths, f"{API}/openapi.json")
    for route, (status, _, body) in zip(ROUTES, found, strict=False):
        assert status == 200, body
        msgspec.json.decode(body, type=route.answer)
    document = json.loads(found[-1][2])
    assert set(document["paths"]) == {route.path for route in ROUTES}
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
    _written(
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


def _written(out, records):
    writer = RecordWriter(out, warn=pytest.fail)
    writer.start()
    for record in records:
        writer.write(record)
    writer.close()


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(lambda run, _: run[:5], id="shorter"),
        pytest.param(
            lambda run, later: [*run[:300], *later[300:400]], id="other records behind the same ones"
        ),
        pytest.param(lambda _, later: later, id="of another day, and longer"),
        pytest.param(lambda run, _: [one for one in run if one.loop == "nodes"], id="without a loop"),
    ],
)
def test_a_new_run_takes_the_place_of_the_old_one(folder, tmp_path, new):
    """When another run writes anew to a folder, nothing of the earlier run is reported; runs are counted."""
    of_both = (read_records(folder, loop) for loop in ("horizontal", "nodes"))
    run = sorted((one for loop in of_both for one in loop), key=lambda one: (one.now, one.loop, one.tick))
    _written(tmp_path, run[:400])
    followed = History(tmp_path)
    assert followed.span().run == 1
    _written(tmp_path, new(run, [msgspec.structs.replace(one, now=one.now + 86_400 * 10**9) for one in run]))
    fresh = History(tmp_path)
    assert followed.span() == msgspec.structs.replace(fresh.span(), run=2)
    assert followed.span().run == 2, "one that is seen again is the same"
    assert followed.decisions(**ALL_DECISIONS) == fresh.decisions(**ALL_DECISIONS)
    assert followed.status("") == fresh.status("")


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
        ("status?at=2020-01-01T00:00:00Z", 404, "ask about a later time"),
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


def test_nobody_looks_without_the_token(folder):
    """Pages and API require the token; the one of the address goes into a cookie and out of the address."""
    paths = ("/", f"{API}/span", "/app.js", f"/?token={TOKEN}x")
    assert [status for status, _, _ in asked(folder, *paths, headers={})] == [401] * 4
    assert asked(folder, "/", headers={"Authorization": "Bearer no"})[0][0] == 401
    ((status, headers, _),) = asked(folder, f"/decisions?q=web&token={TOKEN}", headers={})
    assert (status, headers["Location"]) == (303, "/decisions?q=web")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=Strict" in headers["Set-Cookie"]


@pytest.mark.parametrize(
    "path", ["//elsewhere.example/x", "///elsewhere.example/x", "/\\elsewhere.example/x"]
)
def test_the_token_leads_to_no_other_host(folder, path):
    """Of an address that a browser would take for another host's the redirect makes a page of this one."""
    ((status, headers, _),) = asked(folder, f"{path}?token={TOKEN}&at=12:00", headers={})
    assert (status, headers["Location"]) == (303, "/elsewhere.example/x?at=12:00")


def test_refused_methods_carry_the_policy(folder):
    """An answer that the router gives has the same headers as all others."""

    async def main(clock):
        listener = Listener(Dashboard(History(folder), OwnToken(TOKEN), clock).app())
        await listener.listen("127.0.0.1")
        try:
            address = f"http://{listener.authority}/"
            async with aiohttp.request("POST", address, headers=HEADERS) as answer:
                return answer.status, answer.headers
        finally:
            await listener.close()

    status, headers = run_real(main)
    assert status == 405
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_pages_load_nothing_from_elsewhere(folder):
    """Every answer carries the policy; no file of the front end names another host; all weigh under 100 kB."""
    found = asked(folder, "/", "/app.js", "/icon.svg", "/style.css", "/pod/default/some-pod")
    assert all("default-src 'none'" in headers["Content-Security-Policy"] for _, headers, _ in found)
    bodies = [body.replace("http://www.w3.org/2000/svg", "") for _, _, body in found]
    assert not [body for body in bodies if "http://" in body or "https://" in body or "innerHTML" in body]
    assert sum(map(len, bodies)) < 100_000
    assert bodies[0] == bodies[4]


def test_too_many_questions_are_sent_away(folder):
    """While one question is answered a few wait; more are refused, with the advice to come again."""

    class Slow(History):
        def span(self):
            return held.result() or super().span()

    held = asyncio.Future

    async def main(clock):
        import concurrent.futures

        nonlocal held
        held = concurrent.futures.Future()
        listener = Listener(Dashboard(Slow(folder), OwnToken(TOKEN), clock).app())
        await listener.listen("127.0.0.1")
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(headers=HEADERS, connector=connector) as session:

            async def ask():
                async with session.get(f"http://{listener.authority}{API}/span") as answer:
                    return answer.status

            asking = [asyncio.ensure_future(ask()) for _ in range(MOST_WAITING + 5)]
            refused, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            while len(refused) < 5:
                more, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                refused |= more
            held.set_result(None)
            answered = await asyncio.gather(*waiting)
        await listener.close()
        return [one.result() for one in refused], answered

    refused, answered = run_real(main)
    assert refused == [503] * 5
    assert answered == [200] * MOST_WAITING


def test_growth_is_reported(folder, tmp_path):
    """A listener gets a line at once, and an event when something is recorded."""
    records = list(read_records(folder, "nodes"))
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    writer.write(records[0])

    async def main(clock):
        listener = Listener(Dashboard(History(tmp_path), OwnToken(TOKEN), clock).app())
        await listener.listen("127.0.0.1")
        url = f"http://{listener.authority}{API}/events"
        async with aiohttp.ClientSession(headers=HEADERS) as session, session.get(url) as answer:
            first = await answer.content.readuntil(b"\n\n")
            writer.write(records[1])
            second = await answer.content.readuntil(b"\n\n")
        await listener.close()
        return first, second

    assert run_real(main) == (b": here\n\n", b"event: grown\ndata: {}\n\n")
    writer.close()


def test_listeners_that_never_read_hold_up_nobody(folder, tmp_path, monkeypatch):
    """With as many silent listeners as there may be, one more is refused, questions are answered, and readers get events."""
    monkeypatch.setattr(server, "MOST_STREAMS", 60)
    records = list(read_records(folder, "nodes"))
    writer = RecordWriter(tmp_path, warn=pytest.fail)
    writer.start()
    writer.write(records[0])

    async def main(clock):
        listener = Listener(Dashboard(History(tmp_path), OwnToken(TOKEN), clock).app())
        await listener.listen("127.0.0.1")
        host, _, port = listener.authority.rpartition(":")
        request = f"GET {API}/events HTTP/1.1\r\nHost: {listener.authority}\r\n"
        request += "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
        silent = [await asyncio.open_connection(host, int(port), limit=1) for _ in range(59)]
        for _, sender in silent:
            sender.write(f"{request}\r\n".encode())
            await sender.drain()
        url = f"http://{listener.authority}{API}"
        async with aiohttp.ClientSession(headers=HEADERS) as session, session.get(f"{url}/events") as reader:
            received = [await reader.content.readuntil(b"\n\n")]
            async with session.get(f"{url}/events") as one_more:
                refused = one_more.status
            async with session.get(f"{url}/span") as answer:
                answered = answer.status
            writer.write(records[1])
            received.append(await reader.content.readuntil(b"\n\n"))
        for _, sender in silent:
            sender.close()
        await listener.close()
        return refused, answered, received

    assert run_real(main) == (503, 200, [b": here\n\n", b"event: grown\ndata: {}\n\n"])
    writer.close()


def test_pages_use_the_servers_clock():
    """No page asks the browser what time it is, so a clock that is off there changes nothing."""
    code = "".join(path.read_text(encoding="utf-8") for path in STATIC.glob("*.js"))
    assert not re.search(r"Date\.now|new Date\(\)|performance\.now", code)


def test_a_tail_reads_each_record_once(folder, tmp_path):
    """Whatever is written between two looks, half a line too, each record is seen once and whole."""
    whole = list(read_records(folder, "horizontal"))
    text = next((folder / "records").glob("horizontal-*.jsonl")).read_bytes()
    target = tmp_path / "records" / "horizontal-0001.jsonl"
    target.parent.mkdir()
    tail, found = RecordTail(tmp_path, "horizontal"), []
    with target.open("wb") as file:
        for start in range(0, len(text), 7919):
            file.write(text[start : start + 7919])
            file.flush()
            found += tail.read()
    assert found == whole
    assert list(tail.read()) == []
    target.write_bytes(text.splitlines(keepends=True)[0] + b"no record\n")
    with pytest.raises(RecordError, match=r"horizontal-0001\.jsonl byte"):
        list(RecordTail(tmp_path, "horizontal").read())


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["--listen", "0.0.0.0:0"], "name a file with a token"),
        (["--listen", "nowhere"], "is not an address"),
        (["--out", "{tmp}/none"], "no records under"),
        (["--token-file", "{tmp}/none"], "cannot be read"),
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
