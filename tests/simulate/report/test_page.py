"""The page as a file: one, complete, and safe against the names in it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from importlib import resources

import pytest
from tests.simulate import made

from kubetide.simulate.report import write_report
from kubetide.simulate.report.page import json_in_html, render_page
from kubetide.simulate.report.series import report_data
from kubetide.simulate.timeline import summarize

STATIC = resources.files("kubetide.simulate.report") / "static"
WILD = "</script><b>&amp;<!--\u2028\"'@@SCRIPT@@"


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


def page(name="shop", **arguments):
    timeline = made.timeline(**arguments)
    return render_page(name, report_data(name, timeline, summarize(name, timeline)))


def test_the_file_names_no_other(tmp_path):
    """A report needs no network: no address, no import, no source, and a policy that forbids fetching."""
    timeline = made.timeline()
    write_report(tmp_path / "report.html", "shop", timeline, summarize("shop", timeline))
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "http:" not in text
    assert "https:" not in text
    assert not re.search(r"url\(|@import", text)
    assert not [name for name, _ in Elements(text).attributes if name in {"src", "href", "srcset"}]
    assert "default-src 'none'" in html.unescape(text)


def test_the_policy_allows_just_what_was_put_in():
    """The content security policy holds the hash of each script and style, and nothing looser."""
    text = page()
    parsed = Elements(text)
    policy = next(value for name, value in parsed.attributes if name == "content" and "default-src" in value)
    assert "unsafe" not in policy
    data, *scripts = parsed.inside["script"]
    json.loads(data)
    for inline in (*scripts, *parsed.inside["style"]):
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_wild_names_stay_names():
    """A name that looks like markup changes no element and comes back as it was."""
    tame, wild = Elements(page()), Elements(page(WILD, services=(WILD, "cart")))
    assert wild.tags == tame.tags
    data = json.loads(wild.inside["script"][0])
    assert data["name"] == WILD
    assert WILD in [service["name"] for service in data["services"]]


def test_json_in_html_ends_no_element():
    """No character that HTML acts on is left in the inline data."""
    assert not set("<>&\u2028\u2029") & set(json_in_html({"name": WILD, "</script>": 1}))


def test_vendored_files_are_the_ones_named():
    """Each vendored file has the digest and the licence of the manifest."""
    manifest = json.loads((STATIC / "vendored.json").read_text())
    for name, entry in manifest.items():
        assert hashlib.sha256((STATIC / name).read_bytes()).hexdigest() == entry["sha256"]
        assert entry["licence"] == "MIT"
    vendored = {entry.name for entry in STATIC.iterdir() if entry.name.startswith("uPlot")}
    assert vendored == set(manifest)


def test_the_licence_travels_with_the_page():
    """The page carries the licence text of what is vendored in it."""
    text = page()
    assert text.count((STATIC / "uPlot.LICENSE").read_text().strip()) == 2


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(STATIC.glob("*.js")) if "uPlot" not in path.name]
)
def test_scripts_write_text_only(name):
    """No script of the page turns a string into markup or code."""
    source = (STATIC / name).read_text()
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function", source
    )
