"""Ten questions of an incident, answered in a real browser by clicking only: on a live run, an old folder and a report."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from selenium.common.exceptions import WebDriverException
from selenium.webdriver import ActionChains
from selenium.webdriver.support.ui import WebDriverWait
from tests.browsers import chromium

from kubetide.cli.common.output import write_results
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.web.history import History

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCENARIO = Path(__file__).with_name("incident.yaml")
KUBETIDE = [sys.executable, "-m", "kubetide"]
PATIENCE_S = 40


class Person:
    """Looks at a page and clicks; elements that are drawn anew meanwhile are read again."""

    def __init__(self, browser, home, folder):
        self._browser, self.home = browser, home
        self.folder = folder

    def begin(self):
        """Open the address that was printed, or the file."""
        self._browser.get("about:blank")
        self._browser.get(self.home)
        self.read("main h1")

    def _again(self, attempt, reported):
        wait = WebDriverWait(self._browser, PATIENCE_S, ignored_exceptions=[WebDriverException])
        return wait.until(lambda _: attempt(), reported)

    def _texts(self, selector):
        return [one.text for one in self._browser.find_elements("css selector", selector) if one.text]

    def read(self, selector, words=""):
        """Return the text of the first element that has the words, as soon as there is one."""
        found = self._again(
            lambda: [one for one in self._texts(selector) if re.search(words, one)],
            f"{selector} with {words}",
        )
        return found[0]

    def click(self, selector, words="", on=""):
        """Click the first element that has the words, or what lies in it."""

        def attempt():
            for one in self._browser.find_elements("css selector", selector):
                if re.search(words, one.text):
                    (one.find_element("css selector", on) if on else one).click()
                    return True
            return False

        self._again(attempt, f"a click on {selector} with {words}")

    def click_plot(self, title, time):
        """Click a plot at a time of day, until the page is at that minute."""

        def attempt():
            before = self.read("#at")
            frame = self._browser.find_element("css selector", f".frame[aria-label^='{title}']")
            ends = frame.find_element("xpath", "..").find_elements("css selector", ".ends time")
            since, until = (datetime.fromisoformat(one.get_attribute("datetime")) for one in ends)
            at = datetime.fromisoformat(f"{since:%Y-%m-%d}T{time}Z")
            share = (at - since) / (until - since) - 0.5
            self._browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", frame)
            ActionChains(self._browser).move_to_element_with_offset(
                frame, share * frame.size["width"], 0
            ).click().perform()
            self._again(lambda: self.read("#at") != before, f"another time than {before}")
            return re.search(f" {time[:5]}", self.read("#at"))

        self._again(attempt, f"a click on {title} at {time}")

    def fact(self, label):
        """Return the number over a label."""
        *_, number = self.read("main .facts > div", label).split("\n")
        return float(number.partition(" ")[0].replace(",", ""))

    def recorded(self, kind, figure):
        """Return what the records say of the time that the page shows."""
        at = self.read("#at").removesuffix(" UTC").replace(" ", "T") + "Z"
        past = History(self.folder).past(kind=kind, name="", figure=figure, at=at, window="", points=5000)
        return [line.values[-1] for line in past.lines]


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from chromium(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """The folder of a run that has ended."""
    out = tmp_path_factory.mktemp("old")
    result = run_simulation(load_scenario(SCENARIO), base=out, out=out, seed=1, warn=lambda _: None)
    write_results(result, out)
    return out


def served(out):
    with subprocess.Popen([*KUBETIDE, "ui", "--out", str(out)], stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().split()[1]
        process.terminate()


def running(out):
    """A run without an end, and the dashboard beside it."""
    command = [*KUBETIDE, "up", SCENARIO, "--ui", "--speed", "60", "--until", "never", "--out", out]
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as run:
        while "dashboard" not in (line := run.stderr.readline()):
            assert run.poll() is None
        yield line.split()[-1]
        run.send_signal(signal.SIGINT)
        run.communicate(timeout=PATIENCE_S)
    assert (out / "report.html").exists()


@pytest.fixture(scope="module", params=["a live run", "an old folder", "a report"])
def person(request, browser, old, tmp_path_factory):
    """Somebody before a page of the incident, after the burst."""
    if request.param == "a report":
        yield Person(browser, (old / "report.html").as_uri(), old)
        return
    out = tmp_path_factory.mktemp("live") if request.param == "a live run" else old
    for home in running(out) if request.param == "a live run" else served(out):
        browser.get(home)
        one = Person(browser, home.partition("?")[0], out)
        one.read("#at", r" 12:(0[5-9]|[1-5])| 1[3-9]:")
        yield one


@pytest.fixture(autouse=True)
def _begins(person):
    person.begin()


def test_which_pod_waits_and_why(person):
    """The overview names it; its page says what it lacks."""
    row = person.read("main tr", "default/huge-")
    assert "add a group like general with a larger machine type: 40 cpu" in row
    person.click("nav a", "Objects")
    person.click("main a", "default/huge-")
    person.read("h1", "^pod default/huge-")
    assert "Insufficient cpu" in person.read(".why", "Insufficient")


def test_which_node_is_blocked_and_by_whom(person):
    """The overview names node and pod; the node's page the budget."""
    row = person.read("main tr", "blocked")
    assert re.match(r"quiet-\w+ quiet blocked pod default/kept-\S+: NotEnoughPdb", row)
    assert person.fact("nodes blocked or going") == 2
    person.click("main tr a", "quiet-")
    assert "PodDisruptionBudget default/kept" in person.read(".why", "NotEnoughPdb")


def test_what_a_moment_cost(person):
    """A click on the plot of cost at 12:01 shows that moment: what an hour cost, and what was spent until then."""
    person.click_plot("Cost an hour", "12:01:10")
    assert person.read("#at", " 12:01:")
    (cost,) = person.recorded("cluster", "cost")
    assert person.fact("cost an hour") == pytest.approx(cost, abs=0.0005)
    assert person.fact("cost a month") == pytest.approx(730 * cost, abs=0.5)
    (spent,) = person.recorded("run", "spent")
    assert float(person.read(".plot", "Spent").split("spent ")[1].split()[0]) == pytest.approx(
        spent, rel=1e-3
    )


def test_why_there_are_more_pods(person):
    """The decision opens to the metric that recommended them."""
    person.click("nav a", "Decisions")
    person.click(".decisions summary", "scaled from 3 to 5", on=".loop")
    assert "cpu utilization: " in person.read(".decisions details[open]", "scaled from 3 to 5")


def test_why_a_node_was_bought(person):
    """The purchase opens to the pods that it is for; the group in it leads to the group's page."""
    person.click("nav a", "Decisions")
    person.click(".decisions summary", "group general was increased from 2 to 3", on=".loop")
    assert "would hold" in person.read(".decisions details[open]", "increased from 2 to 3")
    person.click(".decisions details[open] summary a", "^general$")
    person.read("h1", "^node group general$")


def test_why_there_are_no_more_pods(person):
    """The HPA is at its bound, which its row names; its page has the bound over the replicas."""
    assert person.read("main tr", "^default/web .*maxReplicas holds it")
    person.click("main tr a", "default/web")
    assert person.read(".plot .legend", r"(?s)desired 8\b.*max 8\b")


def test_which_node_went_before(person):
    """The list of the loop's decisions has its going, with what it was for."""
    person.click("nav a", "Decisions")
    person.click("#of-loop option", "nodes")
    assert "unneeded for" in person.read(".decisions > li", r"node general-\w+ of group general goes")


def test_how_many_pods_waited_in_the_burst(person):
    """The time of a decision leads to that moment, where the overview counts them."""
    person.click("nav a", "Decisions")
    person.click(".decisions a.at", " 12:02:00")
    person.read("#at", " 12:02:00")
    person.click("nav a", "Overview")
    person.read("#at", " 12:02:00")
    (pending,) = person.recorded("cluster", "pending")
    assert person.fact("pods waiting") == pending > 0


def test_what_the_group_may_grow_to(person):
    """A node group's row leads to its page: bounds, size and what it did."""
    person.click("main tr a", "^general$")
    person.read("h1", "^node group general$")
    assert person.read(".plot .legend", r"(?s)ready 3\b.*max 6\b.*min 1\b")
    assert "increased from 1 to 2" in person.read(".decisions", "increased")


def test_what_is_to_come(person):
    """The page ahead says what the loops foresee, and for whom no node comes."""
    person.click("nav a", "Ahead")
    assert person.read("main", "(?s)default/huge.*no node group takes 1 replica of it")


def test_what_is_about_to_happen(person):
    """Where nodes are on order the overview says so; a report, which is a file, knows what is to come at its end alone."""
    person.click("nav a", "Decisions")
    bought = "group general was increased from 2 to 3"
    at = person.read(".decisions li", bought)[:19]
    person.click(".decisions li", bought, on="a.at")
    person.read("#at", at)
    person.click("nav a", "Overview")
    person.read("h2", "^At 2026")
    if person.home.startswith("http"):
        assert "more node has joined" in person.read("#coming")
