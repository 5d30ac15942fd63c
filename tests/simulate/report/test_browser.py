"""The report in a real browser: point at a mark, read why, zoom, and compare the numbers."""

from __future__ import annotations

import json

import pytest
from tests.browsers import chromium
from tests.simulate import made

from kubetide.simulate.report import write_report
from kubetide.simulate.table import summary_table
from kubetide.simulate.timeline import summarize

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WILD = "</script><b>bold"


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a made run with one wild service name, and its summary."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    timeline = made.timeline(services=("storefront", "cart", WILD))
    summary = summarize("shop", timeline)
    write_report(path, "shop", timeline, summary)
    return path, summary


@pytest.fixture(scope="module")
def browser(report, tmp_path_factory):
    """A headless Chromium with the report open."""
    for started in chromium(tmp_path_factory.mktemp("profile")):
        started.get(report[0].as_uri())
        yield started


def element(browser, selector):
    return browser.find_element("css selector", selector)


def elements(browser, selector):
    return browser.find_elements("css selector", selector)


def lane(browser, title):
    return elements(browser, f".lane[aria-label='Decisions: {title}'] button")


@pytest.fixture(autouse=True)
def _fresh(browser):
    """Each test starts with the page as it was opened."""
    browser.refresh()
    assert element(browser, "html").get_attribute("data-ready") == "true"


def test_nothing_goes_wrong(browser):
    """The page starts without an error, and its content security policy stops nothing of its own."""
    assert browser.get_log("browser") == []


def test_pointing_at_a_mark_tells_why(browser):
    """The reason of a decision appears when the pointer is on its mark, and goes with it."""
    from selenium.webdriver import ActionChains

    mark = lane(browser, "Nodes, ready, by group")[0]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    tip = element(browser, "#tip")
    assert "group burst was increased from 0 to 1" in tip.text
    assert "1 new nodes would hold 4 pods" in tip.text
    assert element(browser, "#cursor-time").text == "2026-03-02 11:20:15"
    ActionChains(browser).move_to_element(element(browser, "h1")).perform()
    assert not tip.is_displayed()


def test_marks_are_reached_by_keyboard(browser):
    """A lane is one stop of the Tab key; arrows go from mark to mark; Enter opens the decision in the list."""
    marks = lane(browser, "cart, replicas")
    assert [mark.get_attribute("tabindex") for mark in marks[:2]] == ["0", "-1"]
    browser.execute_script("arguments[0].focus()", marks[0])
    assert "scaled from 2 to 4" in element(browser, "#tip").text
    browser.switch_to.active_element.send_keys("\ue014")  # right arrow
    assert "scaled from 4 to 2" in element(browser, "#tip").text
    browser.switch_to.active_element.send_keys("\ue007")  # enter
    assert browser.switch_to.active_element.get_attribute("aria-expanded") == "true"
    assert "default/cart: scaled from 4 to 2" in element(browser, ".decisions tr.at").text
    assert "91% is 1.52 of the target" in element(browser, ".decisions tr.at").text


def test_the_page_shows_the_summary(browser, report):
    """The inline summary is the one of the run, and each cell of the printed table stands on the page."""
    import msgspec

    _, summary = report
    data = json.loads(element(browser, "#kubetide-data").get_attribute("textContent"))
    assert msgspec.convert(data["summary"], type(summary)) == summary
    shown = [cell.text for cell in elements(browser, ".tables :is(th, td), .facts dd, .facts dt")]
    table = summary_table(summary).split("\n\n")
    printed = [word for block in table[1:3] for line in block.splitlines()[1:] for word in line.split()]
    assert len(printed) == 3 * 10 + 2 * 3
    assert not [word for word in printed if word not in shown]


def test_wild_names_are_shown_as_they_are(browser):
    """A service named like markup is text on the page."""
    assert WILD in [title.text.removesuffix(" replicas") for title in elements(browser, ".chart h3")]
    assert elements(browser, "h3 b") == []


def test_dragging_zooms_all_plots(browser):
    """A drag over one plot sets the range of all, and the button brings the whole run back."""
    from selenium.webdriver import ActionChains

    plot = element(browser, ".u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    ActionChains(browser).move_to_element_with_offset(plot, -60, 0).click_and_hold().move_by_offset(
        60, 0
    ).release().perform()
    ranges = browser.execute_script("return plots.map(({plot}) => [plot.scales.x.min, plot.scales.x.max])")
    assert len({tuple(found) for found in ranges}) == 1
    assert ranges[0][1] - ranges[0][0] < 240 * 15 / 4
    assert len(lane(browser, "cart, replicas")) < 2
    element(browser, "#whole-run").click()
    assert len(lane(browser, "cart, replicas")) == 2


def test_the_list_is_filtered(browser):
    """Words and the loop narrow the list of decisions."""
    rows = ".decisions tbody tr"
    assert len(elements(browser, rows)) == 7
    element(browser, "#find").send_keys("cart 1.52")
    assert len(elements(browser, rows)) == 2
    element(browser, "#find").clear()
    element(browser, "#find").send_keys("hold")
    assert [row.text.rpartition("▲")[2] for row in elements(browser, rows)] == [
        "group burst was increased from 0 to 1"
    ]


def test_plots_are_drawn_anew_for_another_width_and_scheme(browser):
    """A narrower window and a dark scheme redraw the plots within the range that was shown."""
    browser.execute_script("setView(DATA.time[50], DATA.time[100])")
    before = browser.execute_script("return [plots[0].plot.scales.x.min, plots[0].plot.width]")
    size = browser.get_window_size()
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    browser.set_window_size(700, 900)
    try:
        found = browser.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => setTimeout(() => done("
            "[plots[0].plot.scales.x.min, plots[0].plot.width, document.documentElement.scrollWidth - innerWidth])))"
        )
    finally:
        browser.set_window_size(size["width"], size["height"])
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert found[0] == before[0]
    assert found[1] != before[1]
    assert found[2] <= 0
    assert browser.get_log("browser") == []
