"""The dashboard in a real browser: pages, the time slider, live updates, wild names."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from tests.browsers import chromium
from tests.simulate.worlds import small

from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import read_records
from kubetide.simulate.run import run_simulation

pytestmark = [pytest.mark.browser, pytest.mark.slow]

WILD = "<img src=x onerror=alert(1)>"
PATIENCE_S = 60


class Site(NamedTuple):
    """A dashboard: its address, its folder, the records of its run, those to come, the writers of its folder, and what begins it anew."""

    address: str
    out: Path
    records: list
    coming: Iterator
    writers: list
    filled: object


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A dashboard over a run's records, without the last one, which comes again and again, a second later each time."""
    full, out = tmp_path_factory.mktemp("full"), tmp_path_factory.mktemp("run")
    run_simulation(small(), base=full, out=full, seed=3, warn=lambda _: None)
    records = sorted(
        (one for loop in ("horizontal", "nodes") for one in read_records(full, loop)),
        key=lambda one: (one.now, one.loop, one.tick, one.phase),
    )
    *most, last = records
    coming = (msgspec.structs.replace(last, now=last.now + second * 10**9) for second in count(1))

    def filled():
        """Begin a run in the folder, and return what writes it."""
        writer = RecordWriter(out, warn=pytest.fail)
        writer.start()
        for record in most:
            writer.write(record)
        for figures in (full / "records").glob("*.figures"):
            shutil.copy(figures, out / "records")
        return writer

    writers = [filled()]
    command = [sys.executable, "-m", "kubetide", "ui", "--out", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        address = process.stdout.readline().split()[1]
        yield Site(address, out, most, coming, writers, filled)
        process.terminate()


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    for started in chromium(tmp_path_factory.mktemp("profile")):
        started.get(site.address)
        yield started


def shown(browser, condition):
    stale = [StaleElementReferenceException]
    return WebDriverWait(browser, PATIENCE_S, ignored_exceptions=stale).until(condition)


def element(browser, selector):
    return shown(browser, lambda one: one.find_element("css selector", selector))


def go(browser, site, path):
    """Open a page by its address, and wait until it is shown."""
    browser.get(site.address.partition("?")[0].rstrip("/") + path)
    shown(browser, lambda one: one.find_elements("css selector", "main h1"))


def test_the_token_leaves_the_address(browser, site):
    """After the first look the address can be pasted anywhere."""
    browser.get("about:blank")
    browser.get_log("browser")  # what other tests made it say
    go(browser, site, "/")
    assert "token" not in browser.current_url
    assert element(browser, "h1").text == "Overview"
    assert browser.get_log("browser") == []


def test_from_the_overview_to_the_reason_by_clicking(browser, site):
    """Overview, an HPA, why, and a node group out of a decision's words."""
    go(browser, site, "/")
    element(browser, "a[href='/hpa/default/web']").click()
    assert shown(browser, lambda one: "default/web" in one.find_element("css selector", "h1").text)
    shown(browser, lambda one: "cpu utilization" in one.find_element("css selector", "main").text)
    element(browser, "nav a[href='/decisions']").click()
    shown(browser, lambda one: one.find_element("css selector", "h1").text == "Decisions")
    Select(element(browser, "#of-loop")).select_by_visible_text("nodes")
    shown(browser, lambda one: "loop=nodes" in one.current_url)
    of_nodes = "const found = [...document.querySelectorAll('.decisions .loop')].map((one) => one.textContent); return found.length && found.every((one) => one === 'nodes')"
    shown(browser, lambda one: one.execute_script(of_nodes))
    browser.back()
    shown(browser, lambda one: "loop=nodes" not in one.current_url)


def test_a_time_is_part_of_the_address(browser, site):
    """The slider goes to the past; the address of that moment shows the same again; Live comes back."""
    go(browser, site, "/hpa/default/web")
    now = element(browser, ".why").text
    browser.execute_script(
        "const s = document.getElementById('slider'); s.value = 200; s.dispatchEvent(new Event('change'))"
    )
    shown(browser, lambda one: "at=2026-03-02T00%3A0" in one.current_url)
    past = shown(browser, lambda one: (text := one.find_element("css selector", ".why").text) != now and text)
    here, at = browser.current_url, element(browser, "#at").text
    assert at.startswith("2026-03-02 00:0")
    go(browser, site, "/")
    browser.get(here)
    shown(browser, lambda one: one.find_elements("css selector", ".why"))
    assert (element(browser, ".why").text, element(browser, "#at").text) == (past, at)
    element(browser, "#live").click()
    shown(browser, lambda one: "at=" not in one.current_url)


def test_the_past_is_plotted(browser, site):
    """Lines have the numbers of the API; arrows move through time, the table holds them too, Enter goes there."""
    go(browser, site, "/hpa/default/web?window=all")
    assert "ready pods 4" in element(browser, "#plot-Replicas").get_attribute("aria-valuetext")
    lines = browser.find_elements("css selector", ".plot path.line")
    assert all(one.get_attribute("d").startswith("M") for one in lines)
    titles = [one.text for one in browser.find_elements("css selector", ".plot h3")]
    assert titles == ["Replicas", "cpu utilization, % (once a minute)"]
    frame = element(browser, "#plot-Replicas")
    frame.send_keys(Keys.HOME)
    assert frame.get_attribute("aria-valuetext").startswith("2026-03-02 00:00:00: ")
    assert element(browser, ".plot .when").text == "2026-03-02 00:00:00"
    summary = element(browser, ".plot summary")
    summary.click()
    rows = shown(browser, lambda one: one.find_elements("css selector", ".plot tbody tr"))
    assert re.match(r"2026-03-02 00:19:5\d 4 ", rows[0].text), "the last tick, or that of another test"
    frame.send_keys(Keys.ENTER)
    shown(browser, lambda one: "at=2026-03-02T00%3A00%3A00Z" in one.current_url)


def test_plots_of_other_pages(browser, site):
    """The overview has the cluster's, a node group its own; how far back is part of the address."""
    go(browser, site, "/")
    titles = [one.text for one in browser.find_elements("css selector", ".plot h3")]
    assert titles == [
        "Pods",
        "Pods waiting for a node",
        "Nodes ready by group",
        "Cost an hour",
        "Load, requests/s",
        "CPU cores",
        "SLO minutes lost",
        "Spent since the start",
    ]
    Select(element(browser, "#window")).select_by_visible_text("1h")
    shown(browser, lambda one: "window=1h" in one.current_url)
    go(browser, site, "/services")
    assert "null" not in element(browser, "main").text
    go(browser, site, "/loops")
    text = element(browser, "main").text
    assert re.search(r"horizontal .*\nnodes ", text)
    assert "recorded by kubetide run alone" in text
    go(browser, site, "/nodegroup/general")
    text = element(browser, ".legend").text
    assert text.splitlines() == ["ready 1", "target 1", "upcoming 0", "max 4", "min 1"]


def test_an_object_is_found_by_name(browser, site):
    """Typing a name leads to its page; a part of one leads to the list."""
    go(browser, site, "/")
    element(browser, "#name").send_keys("general\n")
    shown(browser, lambda one: one.current_url.endswith("/nodegroup/general"))
    element(browser, "#name").clear()
    element(browser, "#name").send_keys("gener\n")
    shown(browser, lambda one: "/objects?q=gener" in one.current_url)
    shown(browser, lambda one: "general" in one.find_element("css selector", "main").text)


def test_wild_names_are_text(browser, site):
    """Markup in an address or a search is shown as it is, and nothing of it runs."""
    go(browser, site, f"/objects?q={WILD.replace(' ', '%20')}")
    assert WILD in element(browser, "h1").text
    go(browser, site, "/pod/default/%3Cimg%20src=x%20onerror=alert(1)%3E")
    assert WILD in element(browser, "h1").text
    assert browser.find_elements("css selector", "main img") == []


def test_what_is_recorded_appears(browser, site):
    """A tick that is written while the page is open moves its time, without a reload."""
    go(browser, site, "/")
    before = element(browser, "#at").text
    browser.execute_script("window.stayed = true")
    site.writers[-1].write(next(site.coming))
    shown(browser, lambda one: one.find_element("css selector", "#at").text > before)
    assert browser.execute_script("return window.stayed")


def test_a_press_is_not_lost_to_news(browser, site):
    """While a link is pressed the page stays as it is; the press leads where the link does, and then the page has the news."""
    go(browser, site, "/")
    before = element(browser, "#at").text
    link = element(browser, "a[href='/hpa/default/web']")
    ActionChains(browser).move_to_element(link).click_and_hold().perform()
    answers = "return performance.getEntriesByType('resource').filter((one) => one.name.includes('/api/v1/')).length"
    asked = browser.execute_script(answers)
    site.writers[-1].write(next(site.coming))
    shown(browser, lambda one: one.execute_script(answers) >= 2 * asked)
    assert link.is_displayed()
    ActionChains(browser).release().perform()
    shown(browser, lambda one: one.current_url.endswith("/hpa/default/web"))
    shown(browser, lambda one: one.find_element("css selector", "#at").text > before)


def test_a_press_whose_end_nobody_saw_ends_with_the_next_move(browser, site):
    """As after a drag of the scroll bar."""
    go(browser, site, "/")
    before = element(browser, "#at").text
    browser.execute_script("dispatchEvent(new PointerEvent('pointerdown', { buttons: 1 }))")
    site.writers[-1].write(next(site.coming))
    shown(
        browser,
        lambda one: ActionChains(one).move_by_offset(1, 0).perform() or element(one, "#at").text > before,
    )


def test_the_header_leads_to_the_time_asked_for(browser, site):
    """Also to a time whose page has not been drawn yet."""
    go(browser, site, "/")
    browser.execute_script(
        "setTime('2026-03-02T00:05:00Z'); document.querySelector('nav a[href=\"/decisions\"]').click()"
    )
    shown(browser, lambda one: one.find_element("css selector", "h1").text == "Decisions")
    assert "at=2026-03-02T00%3A05%3A00Z" in browser.current_url


def test_a_new_run_is_shown_and_reported(browser, site):
    """When another run begins in the folder the page leaves the time of the old one, and says why."""
    go(browser, site, "/hpa/default/web?at=2026-03-02T00:05:00Z&window=all")
    assert element(browser, "#at").text.startswith("2026-03-02 00:05:00")
    writer = RecordWriter(site.out, warn=pytest.fail)
    writer.start()
    try:
        for record in site.records[:200]:
            writer.write(msgspec.structs.replace(record, now=record.now + 86_400 * 10**9))
        shown(browser, lambda one: "A new run has begun" in one.find_element("css selector", "#note").text)
        assert element(browser, "#at").text.startswith("2026-03-03 00:")
        assert browser.current_url.endswith("/hpa/default/web?window=all")
        writer.close()
    finally:
        site.writers.append(site.filled())
    go(browser, site, "/hpa/default/web?at=2026-03-02T00:05:00Z")
    assert element(browser, "#note").text == ""


def test_it_fits_a_small_screen_and_the_keyboard(browser, site):
    """At 360 px nothing is wider than the screen, and no text of a table is cut off; the first stop of the Tab key skips to the page."""
    size = browser.get_window_size()
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        for path in ("/", "/services", "/decisions", "/ahead", "/objects", "/loops", "/nodegroup/general"):
            go(browser, site, path)
            wide = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0, path
        go(browser, site, "/")
        cut = browser.execute_script(
            "return [...document.querySelectorAll('.texts')].filter((one) => one.scrollWidth > one.clientWidth).length"
        )
        assert cut == 0
        assert browser.find_elements("css selector", ".texts td")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.set_window_size(size["width"], size["height"])
    labels = browser.execute_script(
        "return [...document.querySelectorAll('input, select')].filter((one) => !one.labels.length && !one.ariaLabel).length"
    )
    assert labels == 0


def test_a_page_is_light_and_asks_nobody_else(browser, site):
    """Without its data a page weighs less than 300 kB; all that it loads is from its own server."""
    go(browser, site, "/services")
    loaded = browser.execute_script(
        "return performance.getEntries().filter((one) => one.decodedBodySize !== undefined).map((one) => [one.name, one.decodedBodySize])"
    )
    home = site.address.partition("?")[0]
    assert {name.startswith(home) for name, _ in loaded} == {True}
    own = {name: size for name, size in loaded if "/api/" not in name}
    assert {home + name for name in ("services", "app.js", "style.css")} <= set(own)
    assert 20_000 < sum(own.values()) < 300_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read(browser, site, scheme):
    """Every text has a contrast of 4.5 to 1 to its background (WCAG AA), in both schemes."""
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    try:
        for path in ("/", "/services", "/decisions", "/hpa/default/web"):
            go(browser, site, path)
            found = browser.execute_script(CONTRASTS)
            assert len(found) > 10
            assert min(found, key=lambda one: one[0])[0] >= 4.5, min(found)
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CONTRASTS = """
const light = (colour) => {
  const [r, g, b] = colour.match(/[\\d.]+/g).map(Number).map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const ground = (one) => {
  for (let at = one; at; at = at.parentElement) {
    const colour = getComputedStyle(at).backgroundColor;
    if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
};
return [...document.querySelectorAll("body *")]
  .filter((one) => one.checkVisibility() && [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .filter((one) => !one.disabled)
  .map((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(ground(one))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), one.tagName, one.textContent.slice(0, 40)];
  });
"""
