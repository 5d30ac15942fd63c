"""The report in a real browser, as a file: point at a mark, read why, zoom, and compare the numbers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from selenium.webdriver import ActionChains
from selenium.webdriver.support.ui import Select, WebDriverWait
from tests.browsers import chromium

from kubetide.cli.common.output import write_results
from kubetide.simulate.outcome.table import summary_table
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.web.front import as_file
from kubetide.web.report import report_data

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCENARIO = Path(__file__).with_name("incident.yaml")
WILD = "</script><b>bold"
PATIENCE_S = 60


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of a run, the same with one wild service name, and the summary."""
    out = tmp_path_factory.mktemp("run")
    result = run_simulation(load_scenario(SCENARIO), base=out, out=out, seed=1, warn=lambda _: None)
    write_results(result, out)
    data = json.loads(
        (out / "report.html").read_text().partition('id="kubetide-data">')[2].partition("</script>")[0]
    )
    for line in data["history"]["lines"]:
        line["name"] = WILD if line["kind"] == "service" else line["name"]
    (out / "wild.html").write_text(as_file(WILD, data))
    return out / "report.html", result.summary


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium."""
    yield from chromium(tmp_path_factory.mktemp("profile"))


def element(browser, selector):
    return WebDriverWait(browser, PATIENCE_S).until(
        lambda one: one.find_element("css selector", selector), selector
    )


def elements(browser, selector):
    return browser.find_elements("css selector", selector)


def lane(browser, title):
    element(browser, f".lane[aria-label='Decisions: {title}'] button")
    return elements(browser, f".lane[aria-label='Decisions: {title}'] button")


@pytest.fixture(autouse=True)
def _fresh(browser, report):
    """Each test starts with the page as it was opened, and ends without an error of the page or its policy."""
    browser.get("about:blank")
    browser.get(report[0].as_uri())
    assert element(browser, "html").get_attribute("data-ready") == "1"
    yield
    assert browser.get_log("browser") == []


def test_pointing_at_a_mark_says_why(browser):
    """The reason of a decision appears when the pointer is on its mark, and goes with it."""
    mark = lane(browser, "Nodes ready by group")[-1]
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", mark)
    ActionChains(browser).move_to_element(mark).perform()
    tip = element(browser, "#tip")
    assert "group general was increased from 2 to 3" in tip.text
    assert "group general would hold" in tip.text
    cursors = {
        one.text for title, one in zip(elements(browser, ".plot h3"), elements(browser, ".when"), strict=True)
    }
    assert len(cursors) == 1, "all plots have one cursor"
    assert cursors.pop().startswith("2026-03-02 12:0")
    ActionChains(browser).move_to_element(element(browser, "h1")).perform()
    assert not tip.is_displayed()


def test_marks_are_reached_by_keyboard(browser):
    """A lane is one stop of the Tab key; arrows go from mark to mark; Enter opens the decision in the list."""
    marks = lane(browser, "Load, requests/s")
    assert [mark.get_attribute("tabindex") for mark in marks[:2]] == ["0", "-1"]
    browser.execute_script("arguments[0].focus()", marks[0])
    assert "scaled from 2 to 3" in element(browser, "#tip").text
    browser.switch_to.active_element.send_keys("\ue014")  # right arrow
    assert "scaled from 3 to" in element(browser, "#tip").text
    browser.switch_to.active_element.send_keys("\ue007")  # enter
    opened = element(browser, ".decisions details[open]")
    assert "default/web: scaled from 3 to" in opened.text
    assert "cpu utilization: " in opened.text


def test_the_page_shows_the_summary(browser, report):
    """Each cell of the printed table is on the page."""
    _, summary = report
    shown = [cell.text for cell in elements(browser, ".outcome :is(th, td, dd, dt)")]
    table = summary_table(summary).split("\n\n")
    printed = [word for block in table[1:3] for line in block.splitlines()[1:] for word in line.split()]
    assert len(printed) == 10 + 2 * 3
    assert not [word for word in printed if word not in shown]
    assert "SLO minutes lost" in shown


def test_services_are_drawn(browser, report):
    """A service has its load against what its pods could serve, shaded where it missed its objective."""
    _, summary = report
    element(browser, "a[href^='#/services']").click()
    offered, capacity = elements(element(browser, ".plot"), ".legend b")
    element(browser, "#plot-web-requests-s").send_keys("\ue010")  # end
    assert float(offered.text) > 190
    assert float(capacity.text.replace(",", "")) > 0
    assert summary.services[0].slo_minutes_lost > 0
    assert elements(browser, "rect.missed")


def test_wild_names_are_shown_as_they_are(browser, report):
    """A service named like markup is text on the page."""
    browser.get(report[0].with_name("wild.html").as_uri() + "#/services")
    titles = [title.text for title in elements(browser, ".plot h3")]
    assert titles == [f"{WILD}: requests/s", f"{WILD}: replicas"]
    assert elements(browser, "h3 b") == []


def test_dragging_zooms_all_plots(browser):
    """A drag over one plot sets the range of all, in the address; the button brings the whole run back."""
    frame = element(browser, "#plot-Pods")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    ActionChains(browser).move_to_element_with_offset(frame, 0, 0).click_and_hold().move_by_offset(
        60, 0
    ).release().perform()
    whole = element(browser, "#whole")
    begin, end = sorted({one.get_attribute("datetime") for one in elements(browser, ".plot .ends time")})
    assert "2026-03-02T12:00:00Z" < begin < end < "2026-03-02T12:10:00Z"
    assert "window=" in browser.current_url
    whole.click()
    assert element(browser, ".plot .ends").text.endswith("\n12:14:50")


def test_the_list_is_filtered(browser):
    """Words and the loop narrow the list of decisions."""
    element(browser, "nav a[href='#/decisions']").click()
    rows = ".decisions > li"
    every = len(elements(browser, rows))
    element(browser, "#words").send_keys("burst general 3\n")
    assert elements(browser, rows) == []
    element(browser, "#words").clear()
    element(browser, "#words").send_keys("general increased\n")
    assert 0 < len(elements(browser, rows)) < every
    element(browser, "#words").clear()
    Select(element(browser, "#of-loop")).select_by_visible_text("horizontal")
    loops = {one.text for one in elements(browser, ".decisions .loop")}
    assert loops == {"horizontal"}
    browser.back()
    browser.back()
    assert "q=burst" in browser.current_url


def test_another_time_is_shown_from_figures(browser):
    """A click on a plot takes the page there: its figures and decisions; it says that tables are of the end."""
    frame = element(browser, "#plot-Pods")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
    ActionChains(browser).move_to_element_with_offset(frame, -140, 0).click().perform()
    at = element(browser, "#at").text
    assert "2026-03-02 11:5" in at
    assert at[:19] in element(browser, ".plot .when").text
    assert "its tables are of the end" in element(browser, "main").text
    element(browser, "#live").click()
    assert "node groups" in [one.text.rpartition(" ")[0] for one in elements(browser, "h2")]


def test_an_object_is_found_and_what_a_file_cannot_answer_is_said(browser):
    """The page of an object has why it is so, its past and its decisions; at another time it says who knows."""
    element(browser, "#name").send_keys("web\n")
    assert element(browser, "h1").text == "HPA default/web"
    assert "scaled from 2 to 3" in element(browser, ".decisions").text
    assert "largest proposal: " in element(browser, ".why").text
    element(browser, ".decisions a.at").click()
    why = element(browser, ".why").text
    assert re.search(r"(?s)Decided last until .*: default/web: scaled from .*cpu utilization: ", why)
    assert "by kubetide ui --out FOLDER, and by kubetide explain" in why


def test_older_decisions_follow_also_within_a_second(browser, report, tmp_path):
    """Among 450 decisions of one second each part leads to the next, until all were seen once."""
    data = json.loads(report[0].read_text().partition('id="kubetide-data">')[2].partition("</script>")[0])
    one = data["decisions"]["decisions"][0]
    many = [{**one, "text": f"number {number}"} for number in range(450)]
    data["decisions"] = {"found": 450, "decisions": many}
    page = tmp_path / "many.html"
    page.write_text(as_file("many", data))
    browser.get(f"{page.as_uri()}#/decisions")
    seen = []
    for begin in (1, 201, 401):
        if begin > 1:
            element(browser, "#older").click()
            WebDriverWait(browser, PATIENCE_S).until(
                lambda one, begin=begin: one.find_element("css selector", "#found").text.startswith(
                    f"{begin} "
                )
            )
        seen += browser.execute_script(
            "return [...document.querySelectorAll('.decisions .said')].map((one) => one.textContent.split(' ').at(-1))"
        )
    assert seen == [str(number) for number in range(450)]
    assert elements(browser, "#older") == []


def test_it_fits_a_small_screen(browser):
    """At 360 px nothing is wider than the screen."""
    metrics = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        assert browser.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_run_without_decisions(browser, tmp_path):
    """The file of a run that ended before its first decision shows the data that exist."""
    page = tmp_path / "none.html"
    page.write_text(as_file("none", json.loads(json.dumps(report_data(tmp_path), default=lambda _: {}))))
    browser.get(page.as_uri())
    assert element(browser, "h1").text == "Overview"
    assert not element(browser, ".time").is_displayed()
