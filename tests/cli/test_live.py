"""The live view, drawn on a terminal that is not there."""

from __future__ import annotations

import io
import logging

import pytest
from rich.console import Console
from tests.cli.calling import ROOT
from tests.simulate import made

from kubetide.cli.screens.live import LiveView, trend
from kubetide.simulate.outcome.timeline import Mark, ServiceSeries
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.units.time import after, minutes


def view_of(width: int, height: int) -> tuple[LiveView, Console]:
    console = Console(
        file=io.StringIO(),
        force_terminal=True,
        width=width,
        height=height,
        color_system=None,
        legacy_windows=False,
    )
    scenario = load_scenario(ROOT / "examples" / "web-shop.yaml")
    return LiveView(scenario, 60.0, after(made.START, minutes(60)), console), console


def drawn(view: LiveView, console: Console) -> str:
    with console.capture() as captured:
        console.print(view.screen())
    return captured.get()


def test_the_screen_shows_services_nodes_and_reasons():
    """The screen shows the run, with its last decision and the reason first."""
    view, console = view_of(120, 40)
    timeline = made.timeline(steps=90)
    view.sample(timeline)
    for mark in timeline.marks:
        view.mark(mark)
    text = drawn(view, console)
    for words in (
        "storefront",
        "2/2",
        "general",
        "2 of 3",
        "pods without a node",
        "SLO minutes lost",
        "11:22:30",
    ):
        assert words in text
    first, second = text.index("scaled from 4 to 2"), text.index("group burst was increased from 0 to 1")
    assert text.index("cpu: 91% is 1.52 of the target") > first
    assert first < second


def test_numbers_are_whole_on_a_small_terminal():
    """On 80 columns names and bars give way, numbers do not."""
    view, console = view_of(80, 24)
    timeline = made.timeline(steps=90, services=("a-service-with-a-long-name", "cart"))
    for series in timeline.services.values():
        series.offered[-1], series.ready[-1], series.desired[-1] = 12_345.0, 117, 120
    timeline.cpu_used[-1] = timeline.cpu_requested[-1] = timeline.cpu_allocatable[-1] = 100.5
    view.sample(timeline)
    text = drawn(view, console)
    for number in ("12,345", "117/120", "2 of 3", "100/100/100"):
        assert number in text, text


def test_a_screen_before_the_first_step():
    """While the cluster starts there is a sentence that says so."""
    assert "the cluster starts" in drawn(*view_of(80, 24))


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (200, 60)])
def test_the_screen_fits(width, height):
    """No line is wider than the terminal and no screen higher, whatever its size and the names."""
    view, console = view_of(width, height)
    timeline = made.timeline(steps=30, services=("a" * 90, "\x1b[2J"))
    view.sample(timeline)
    view.mark(Mark(at=made.at(3), loop="nodes", subject="x", title="word " * 80, why=("why " * 90,)))
    lines = drawn(view, console).rstrip("\n").split("\n")
    assert len(lines) <= height
    assert max(map(len, lines)) <= width
    assert "\x1b[2J" not in "".join(lines)


def test_the_trend_is_as_high_as_the_load():
    """The tallest block is the highest load, and a long run keeps its peaks."""
    series = ServiceSeries("a", offered=[10.0] * 500 + [80.0] + [10.0] * 99)
    assert trend(series, 24).count("█") == 1
    assert set(trend(ServiceSeries("idle", offered=[0.0, 0.0]), 24)) == {"▁", " "}


def test_the_terminal_comes_back_with_warnings(capsys):
    """Leaving the view gives the screen back and repeats once what a person must see, log lines among it."""
    view, _ = view_of(80, 24)
    with view:
        view.warn("decision records cannot be written")
        for _ in range(3):
            logging.getLogger("kubetide.test").warning("sync of %s failed", "web")
    logging.getLogger("kubetide.test").warning("not the view's any more")
    assert capsys.readouterr().err == (
        "kubetide: decision records cannot be written\nkubetide: sync of web failed\n"
    )
