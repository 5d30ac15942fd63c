"""The site: every page has its place, every link leads somewhere, and MkDocs builds it without a warning."""

from __future__ import annotations

import os
import re
import subprocess

import pytest
from selenium.webdriver.support.ui import WebDriverWait
from tests.browsers import chromium
from tests.docs.site import CONFIG, ROOT, anchors, broken, nav_pages
from tests.docs.tables import DOCS

LOADED = re.compile(r"<(?:script|img|iframe|link)\b[^>]*?\b(?:src|href)=\"?(https?:[^\s\">]+)")
IN_STYLES = re.compile(r"url\(['\"]?(https?:[^)'\"]+)")


def test_every_page_is_in_the_nav_once():
    """The nav lists every page exactly once, and no page that does not exist."""
    there = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    named = nav_pages()
    assert sorted(named) == sorted(there)


def test_every_page_is_linked_where_there_is_no_nav():
    """A browser of the repository has no nav: the first page, or the one on how it is built, links to each page."""
    first = [DOCS / "index.md", DOCS / "how" / "index.md"]
    linked = {
        (page.parent / link).resolve()
        for page in first
        for link in re.findall(r"\]\(([^)#]+\.md)", page.read_text(encoding="utf-8"))
    }
    assert {DOCS / name for name in nav_pages()} - linked == {first[0]}


@pytest.mark.parametrize("name", nav_pages())
def test_links_and_anchors_of_a_page_lead_somewhere(name):
    """Relative links lead to files below docs/, their anchors to headings."""
    assert broken(DOCS / name, DOCS) == []


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_links_into_the_site_lead_somewhere(name):
    """So do those of the pages at the top of the repository."""
    assert broken(ROOT / name, ROOT) == []


def test_a_broken_link_is_found(tmp_path):
    """Missing pages, missing headings and pages above the root are found; text in code is no link."""
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


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The site as `make docs` makes it: strictly."""
    if not MKDOCS.exists() and os.environ.get("KUBETIDE_REQUIRE_DOCS") != "1":
        pytest.skip("no MkDocs in .venv/docs; `make docs` puts it there")
    folder = tmp_path_factory.mktemp("site")
    done = build(CONFIG, folder)
    assert done.returncode == 0, done.stderr
    return folder


def build(config, folder):
    # Not with --quiet: what is not logged does not count as a warning.
    return subprocess.run(
        [MKDOCS, "build", "--config-file", config, "--site-dir", folder],
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_mkdocs_builds_it_and_no_page_asks_another_host(built):
    """The real build has no warning, and what it makes loads nothing from elsewhere."""
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


@pytest.mark.slow
def test_what_is_wrong_ends_the_build(built, tmp_path):
    """A link to no page, one to no heading, a page without a place: each is a warning, and a warning is an error."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# One\n\n[a](none.md) [b](two.md#none)\n")
    (docs / "two.md").write_text("# Two\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(f"INHERIT: {CONFIG}\ndocs_dir: {docs}\nnav: [{{Home: index.md}}]\n")
    done = build(config, tmp_path / "site")
    assert done.returncode == 1
    warnings = re.split(r"^WARNING -", done.stderr, flags=re.MULTILINE)[1:]
    assert len(warnings) == 3
    for said in ("'none.md'", "'#none'", "- two.md"):
        assert any(said in warning for warning in warnings), said


@pytest.mark.slow
@pytest.mark.browser
def test_the_search_works_on_pages_of_a_folder(built, tmp_path):
    """Without a server there are no workers; a query still finds its page, and no error is reported."""
    for browser in chromium(tmp_path):
        browser.get((built / "questions" / "cost.html").as_uri())
        browser.execute_script("document.querySelector('.md-search__input').focus()")
        browser.switch_to.active_element.send_keys("pod pending")
        first = WebDriverWait(browser, 60).until(
            lambda page: page.find_elements("css selector", ".md-search-result__link h1")
        )
        assert first[0].text == "Why is this pod pending?"
        assert browser.get_log("browser") == []
