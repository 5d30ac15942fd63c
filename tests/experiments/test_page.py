"""The page of a comparison in a real browser."""

from __future__ import annotations

import pytest
from tests.browsers import chromium
from tests.simulate import made

from kubetide.experiments.divergence import Divergence, Side, parting_time
from kubetide.experiments.figures import comparison_table, figures
from kubetide.experiments.page import write_comparison
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.run import RunResult

WILD = "</script><b>bold"


def run(timeline):
    return RunResult(timeline=timeline, summary=summarize("shop", timeline), violations=(), unsettled=())


def test_runs_of_the_same_decisions_do_not_part():
    """Equal decisions have no first difference; the order within a tick is none either."""
    marks = made.timeline().marks
    assert parting_time(marks, list(marks)) is None
    twice = [mark for mark in marks if mark.at == marks[0].at]
    assert len(twice) == 2
    assert parting_time(marks, [*reversed(twice), *marks[2:]]) is None


def test_runs_part_where_one_decides_alone():
    """The moment is that of the first decision that only one run took, also where it is the last."""
    marks = made.timeline().marks
    assert parting_time(marks, marks[:2] + marks[3:]) == marks[2].at
    assert parting_time(marks[1:], marks) == marks[0].at
    assert parting_time(marks, marks[:-1]) == marks[-1].at


@pytest.mark.parametrize("services", [(), ("web",)])
def test_without_services_nothing_is_said_of_an_objective(tmp_path, services):
    """Neither the table nor the page compares minutes that nothing could lose."""
    one = run(made.timeline(services=services))
    assert [row[0] for row in comparison_table(figures(one.summary, one.summary)).rows].count(
        "SLO minutes lost"
    ) == len(services)
    write_comparison(tmp_path / "page.html", one, one, None, [])
    title = "SLO minutes lost since the start"
    assert (title in (tmp_path / "page.html").read_text(encoding="utf-8")) == bool(services)


@pytest.mark.browser
@pytest.mark.slow
def test_the_page_in_a_browser(tmp_path):
    """Both runs are side by side; the list names the run of each decision; no name becomes markup."""
    before, after = made.timeline(services=("storefront", WILD)), made.timeline(services=("storefront", WILD))
    after.cost = [2 * one for one in after.cost]
    parting = Divergence(
        before.marks[0].at, Side((before.marks[0],)), Side((), ("11:20:00 it stays at 2 replicas",))
    )
    page = tmp_path / "what-if.html"
    write_comparison(page, run(before), run(after), parting, ["group/general.max=9", WILD])
    for browser in chromium(tmp_path / "profile"):
        browser.get(page.as_uri())
        assert browser.find_element("css selector", "html").get_attribute("data-ready") == "1"
        assert browser.get_log("browser") == []
        cells = [row.text.split() for row in browser.find_elements("css selector", "main tr")]
        assert ["cost,", "USD", "0.24", "0.48", "+0.24", "(+100.0%)"] in cells
        sides = [side.text for side in browser.find_elements("css selector", ".sides > div")]
        assert sides[0].startswith("as it is\ndefault/storefront: scaled from 2 to 4")
        assert sides[1] == "with changes\ndecided nothing\n11:20:00 it stays at 2 replicas"
        assert [one.text for one in browser.find_elements("css selector", ".changes li")][1] == WILD
        assert browser.find_elements("css selector", "b:not(.legend b)") == []
        marks = browser.find_elements(
            "css selector", ".lane[aria-label='Decisions: storefront: replicas'] button"
        )
        assert len(marks) == 2
        browser.find_element("css selector", "nav a[href='#/decisions']").click()
        loops = [option.text for option in browser.find_elements("css selector", "#of-loop option")]
        assert loops[1:] == [
            f"{side}: {loop}" for side in ("as it is", "with changes") for loop in ("horizontal", "nodes")
        ]
        assert len(browser.find_elements("css selector", ".decisions > li")) == 2 * len(before.marks)
