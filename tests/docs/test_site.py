"""The site: every page has its place, every link leads somewhere, and MkDocs builds it without a warning."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from tests.docs.site import CONFIG, ROOT, anchors, broken, nav_pages
from tests.docs.tables import DOCS

LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?(https?:[^\s\">]+)")
IN_STYLES = re.compile(r"url\(['\"]?(https?:[^)'\"]+)")


def test_every_page_is_in_the_nav_once():
    """No page is left out of the nav, none stands twice, and none is only in the nav."""
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    named = nav_pages()
    assert sorted(named) == sorted(there)


@pytest.mark.parametrize("name", nav_pages())
def test_links_and_anchors_of_a_page_lead_somewhere(name):
    """Relative links lead to files below docs/, their anchors to headings."""
    assert broken(DOCS / name, DOCS) == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_into_the_site_lead_somewhere(name):
    """So do those of the pages at the top of the repository."""
    assert broken(ROOT / name, ROOT) == []


def test_a_broken_link_is_found(tmp_path):
    """A missing page, a missing heading, a page above the root; what stands in code is no link."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "above.md").write_text("# A\n")
    page = tmp_path / "docs" / "a.md"
    page.write_text(
        "# One `two`: three\n\n# One two three\n\n[a](b.md) [b](#none) [c](../above.md) [d](#one-two-three)\n`[e](f)`\n"
    )
    assert anchors(page.read_text()) == {"one-two-three", "one-two-three_1"}
    assert broken(page, tmp_path / "docs") == ["b.md", "#none", "../above.md"]


MKDOCS = ROOT / ".venv" / "docs" / "bin" / "mkdocs"
"""Where `make docs` puts it: what the other tests need is installed without it, in half the time."""


@pytest.mark.slow
@pytest.mark.skipif(
    not MKDOCS.exists() and os.environ.get("KUBETIDE_REQUIRE_DOCS") != "1", reason="no MkDocs: make docs"
)
def test_mkdocs_builds_it_strictly(tmp_path):
    """The real build has no warning, and what it makes asks no other host for anything."""
    built = tmp_path / "site"
    done = subprocess.run(
        [MKDOCS, "build", "--quiet", "--config-file", CONFIG, "--site-dir", built],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {str(path.relative_to(built)) for path in built.rglob("*.html")} == {
        "404.html",
        *(name.removesuffix(".md") + ".html" for name in nav_pages()),
    }
    asked = {
        url for path in built.rglob("*.html") for url in LOADED.findall(path.read_text(encoding="utf-8"))
    }
    asked |= {
        url for path in built.rglob("*.css") for url in IN_STYLES.findall(path.read_text(encoding="utf-8"))
    }
    assert asked == set()
    assert (built / "search" / "search_index.json").exists()
