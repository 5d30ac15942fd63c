"""The page as a file: one, complete, and safe against the names in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from importlib import resources

import msgspec
import pytest
from tests.simulate.worlds import small
from tests.web.asking import asked

from kubetide.cli.common.output import write_results
from kubetide.runtime.recording.records import RecordError
from kubetide.simulate.outcome.summary import Summary
from kubetide.simulate.run import run_simulation
from kubetide.web import report
from kubetide.web.front import as_file, json_in_html
from kubetide.web.history import History
from kubetide.web.report import report_data, write_report

STATIC = resources.files("kubetide.web") / "static"
WILD = "</script><b>&amp;<!--\u2028\"'@@SCRIPT@@"
PAGES = ("main", "what-if", "sweep")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The output of a small run."""
    out = tmp_path_factory.mktemp("run")
    write_results(run_simulation(small(), base=out, out=out, seed=3, warn=lambda _: None), out)
    return out


class Elements(HTMLParser):
    """Collects elements and the text of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.inside, self.attributes, self.open = [], {}, [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open = tag
        self.attributes += attrs
        self.inside.setdefault(tag, []).append("")

    def handle_endtag(self, tag):
        self.open = ""

    def handle_data(self, data):
        if self.open in {"script", "style"}:
            self.inside[self.open][-1] += data


def data_of(page):
    return json.loads(Elements(page).inside["script"][0])


def test_the_file_names_no_other(folder):
    """A report needs no network: no address, no import, no source, and a policy that forbids fetching."""
    text = (folder / "report.html").read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"url\(|@import", text)
    addresses = {value for name, value in Elements(text).attributes if name in {"src", "href", "srcset"}}
    assert addresses == {"#main", "/", "/objects", "/decisions", "/ahead"}, "pages of its own"
    assert "default-src 'none'" in html.unescape(text)


def test_the_report_is_the_page_that_is_served(folder):
    """Its script and its style are those of the server, character by character."""
    parsed = Elements((folder / "report.html").read_text(encoding="utf-8"))
    served = asked(folder, "/app.js", "/style.css")
    assert [body for _, _, body in served] == [parsed.inside["script"][1], parsed.inside["style"][0]]


@pytest.mark.parametrize("page", PAGES)
def test_the_policy_allows_just_what_was_put_in(page):
    """The content security policy holds the hash of each script and style, and nothing looser."""
    parsed = Elements(as_file("shop", {}, page=page))
    policy = next(value for name, value in parsed.attributes if name == "content" and "default-src" in value)
    assert "unsafe" not in policy
    data, *scripts = parsed.inside["script"]
    assert json.loads(data) == {}
    assert len(scripts) == 1
    for inline in (*scripts, *parsed.inside["style"]):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_wild_names_stay_names():
    """A name that looks like markup changes no element and comes back as it was."""
    tame, wild = (as_file(name, {"name": name, name: [name]}) for name in ("shop", WILD))
    assert Elements(wild).tags == Elements(tame).tags
    assert data_of(wild) == {"name": WILD, WILD: [WILD]}


def test_json_in_html_ends_no_element():
    """No character that HTML acts on is left in the inline data."""
    assert not set("<>&\u2028\u2029") & set(json_in_html({"name": WILD, "</script>": 1}))


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_light(page):
    """Without its data a page weighs less than 100 kB."""
    assert len(as_file("shop", {}, page=page).encode()) < 100_000


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_report_says_what_the_server_says(tmp_path, seed):
    """Each answer in the file is that of the server over the same records; the summary is that of the run."""
    result = run_simulation(small(), base=tmp_path, out=tmp_path, seed=seed, warn=lambda _: None)
    write_results(result, tmp_path)
    data = data_of((tmp_path / "report.html").read_text(encoding="utf-8"))
    history = History(tmp_path)

    def plain(value):
        return json.loads(msgspec.json.encode(value))

    assert msgspec.convert(data["summary"]["summary"], Summary) == result.summary
    assert data["span"] == plain(history.span())
    assert data["status"] == plain(history.status(""))
    assert data["objects"] == plain(history.objects(""))
    assert data["ahead"] == plain(history.ahead("", "168h"))
    assert len(data["explain"]) == sum(map(len, data["objects"].values())) > 5
    for object_, why in data["explain"].items():
        kind, _, name = object_.partition("/")
        assert why == plain(history.explain(kind, name, "", ""))
    decisions = history.decisions(words="", loop="", subject="", until="", limit=500)
    assert data["decisions"] == plain(decisions)
    assert decisions.found == result.summary.decisions > 3
    of_all = {"kind": "", "name": "", "figure": "", "at": "", "window": "", "points": 5000}
    assert data["history"] == plain(history.past(**of_all))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_figures_end_at_the_summary(tmp_path, seed):
    """The services' losses and the cost in the records are the numbers of the summary."""
    scenario = small(duration="10m", nodes=1)
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=seed, warn=lambda _: None)
    lines = {(one.kind, one.figure): one for one in History(tmp_path).whole_past(10_000).lines}
    (service,) = result.summary.services
    assert lines["service", "lost"].values[-1] == service.slo_minutes_lost
    assert max(lines["service", "offered"].values) == pytest.approx(service.peak_rps, abs=0.01)
    assert max(lines["service", "existing"].values) == service.replicas_max
    step_cost = result.timeline.cost[-1] - result.timeline.cost[-2]
    assert lines["run", "spent"].values[-1] == pytest.approx(result.summary.cost, abs=step_cost + 1e-4)


def test_a_run_without_a_decision_has_a_report(tmp_path):
    """One that was stopped before the first says that nothing is recorded."""
    assert report_data(tmp_path)["span"] is None
    write_report(tmp_path / "report.html", tmp_path)
    assert "default-src 'none'" in html.unescape((tmp_path / "report.html").read_text())


def test_what_cannot_be_answered_says_so(folder, monkeypatch):
    """An answer that the records do not hold is its error; decisions that are left out are counted."""

    def fail(*_):
        raise RecordError("no loop says what is to come")

    monkeypatch.setattr(History, "ahead", fail)
    monkeypatch.setattr(report, "MOST_DECISIONS", 2)
    monkeypatch.setattr(report, "MOST_EXPLAINED", 2)
    data = report_data(folder)
    assert data["ahead"] == {"error": "no loop says what is to come"}
    assert len(data["explain"]) == 2
    assert "hpa/default/web" in data["explain"]
    assert data["leftOut"] == data["decisions"].found - 2 > 0


@pytest.mark.parametrize("name", [path.name for path in sorted(STATIC.glob("*.js"))])
def test_scripts_write_text_only(name):
    """No script of the page turns a string into markup or code."""
    source = (STATIC / name).read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source
    )
