"""The part that a live run plays: from when, until when."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.simulate.scenarios.scenario import Scenario, ScenarioError, start_of
from kubetide.simulate.scenarios.show import end_of_show, shown_part
from kubetide.units.time import format_rfc3339

BASE = {
    "name": "shop",
    "start": "2026-03-02T00:00:00Z",
    "duration": "24h",
    "nodeGroups": [{"name": "general", "instanceType": "m5.large", "max": 3}],
    "faults": [{"kind": "stock-out", "start": "12h", "end": "13h"}, {"kind": "api-error", "start": "1h"}],
}


def scenario(**fields):
    return msgspec.convert({**BASE, **fields}, Scenario)


@pytest.mark.parametrize(
    ("until", "end"),
    [
        (None, "2026-03-03T00:00:00Z"),
        ("13:00", "2026-03-02T13:00:00Z"),
        ("90m", "2026-03-02T01:30:00Z"),
        ("2026-03-02T12:00:00+02:00", "2026-03-02T10:00:00Z"),
    ],
)
def test_an_end_is_a_time_a_time_of_day_or_a_duration(until, end):
    """Each way of saying when to end is read from the start of the show."""
    assert format_rfc3339(end_of_show(scenario(), until)) == end


@pytest.mark.parametrize(
    "until", ["soon", "25:00", "-5m", "0s", "2026-03-01T00:00:00Z", "", "1:2:3:4", "00:00"]
)
def test_a_bad_end_is_refused_with_its_text(until):
    """An end before the start, or that is no time at all, is an error that quotes it."""
    with pytest.raises(ScenarioError, match="until: "):
        end_of_show(scenario(), until)


@pytest.mark.parametrize(
    ("until", "end"),
    [
        ("10:30", None),
        ("11:00", None),
        ("11:00:01", "2026-03-02T11:00:01Z"),
        ("2026-03-03T10:30:00Z", "2026-03-03T10:30:00Z"),
    ],
)
def test_a_time_of_day_just_before_the_start_is_a_slip(until, end):
    """It is refused with how to say the next day; what comes after the start, or has a date, is taken."""
    shown = scenario(start="2026-03-02T11:00:00Z")
    if end is not None:
        assert format_rfc3339(end_of_show(shown, until)) == end
        return
    with pytest.raises(ScenarioError, match=f"or write 2026-03-03T{until}:00Z for the day after"):
        end_of_show(shown, until)


def test_a_time_of_day_after_midnight_is_the_next_day():
    """A run that starts late in the evening may end early in the morning."""
    shown = scenario(start="2026-03-02T23:00:00Z")
    assert format_rfc3339(end_of_show(shown, "01:00")) == "2026-03-03T01:00:00Z"


def test_the_command_line_wins_over_the_scenario():
    """--until takes the place of show.until."""
    shown = scenario(show={"until": "2026-03-02T12:45:00Z"})
    assert format_rfc3339(end_of_show(shown, None)) == "2026-03-02T12:45:00Z"
    assert format_rfc3339(end_of_show(shown, "01:00")) == "2026-03-02T01:00:00Z"


def test_a_later_start_leaves_faults_where_they_were():
    """With show.start the run begins later; a fault has its time of day and the scenario its end."""
    shown = shown_part(scenario(show={"start": "2026-03-02T11:00:00Z"}))
    assert format_rfc3339(start_of(shown)) == "2026-03-02T11:00:00Z"
    assert [(fault.start, fault.end) for fault in shown.faults] == [("1h0m0s", "2h0m0s"), ("-10h0m0s", None)]
    assert format_rfc3339(end_of_show(shown, None)) == "2026-03-03T00:00:00Z"


@pytest.mark.parametrize("start", ["2026-03-01T23:00:00Z", "2026-03-03T00:00:00Z"])
def test_a_show_starts_within_the_scenario(start):
    """A show.start outside of the scenario is an error that names both."""
    with pytest.raises(ScenarioError, match="not within the scenario"):
        shown_part(scenario(show={"start": start}))


def test_a_recorded_load_is_moved_with_the_start():
    """The window of a trace begins later by as much as the run does; without a window that is refused."""
    load = {"trace": "a.csv", "window": ["1998-06-07T00:00:00Z", "1998-06-08T00:00:00Z"]}
    service = {"deployment": "web", "cpuSecondsPerRequest": 0.1, "load": load}
    show = {"start": "2026-03-02T11:00:00Z"}
    shown = shown_part(scenario(show=show, services=[service]))
    assert shown.services[0].load.window == ("1998-06-07T11:00:00Z", "1998-06-08T00:00:00Z")
    with pytest.raises(ScenarioError, match="window"):
        shown_part(scenario(show=show, services=[{**service, "load": {"trace": "a.csv"}}]))
