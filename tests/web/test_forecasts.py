"""The plan against what came: what a run forecast, as it recorded it, in the figures, the dashboard's answer and the report."""

from __future__ import annotations

from bisect import bisect_right

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import LoadSpec
from kubetide.web.history import History
from kubetide.web.report import report_data

ONSETS_S = 1800


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three hours in which the load jumps every half an hour, on an HPA with forecasts."""
    folder = tmp_path_factory.mktemp("run")
    minutes = [110 if minute % 30 < 8 else 40 for minute in range(200)]
    (folder / "load.txt").write_text("".join(f"{one}\n" for one in minutes))
    plain = small(duration="3h", nodes=4)
    asks = "metadata: {name: web, annotations: {horizontal.kubetide.io/forecast: calendar}}\nspec:\n  scaleTargetRef"
    manifest = plain.manifests[0].replace("metadata: {name: web}\nspec:\n  scaleTargetRef", asks)
    load = LoadSpec(trace="load.txt", step="1m")
    services = (replace(plain.services[0], load=load),)
    scenario = replace(plain, services=services, manifests=(manifest,))
    result = run_simulation(scenario, base=folder, out=folder, seed=1, warn=pytest.fail)
    return folder, result


@pytest.fixture(scope="module")
def lines(run):
    """The forecasts of the run, as the dashboard answers: what came and what was forecast."""
    folder, _ = run
    past = History(folder).past(kind="forecast", name="", figure="", at="", window="", points=5000)
    assert [(one.name, one.figure) for one in past.lines] == [
        ("default/web", "came"),
        ("default/web", "forecast"),
    ]
    return past.lines


def value_at(line, time):
    return line.values[bisect_right(line.times, time) - 1] if time >= line.times[0] else None


def test_onsets_are_forecast_and_come(run, lines):
    """From the fourth onset on the load is forecast before it comes, and what came is near it."""
    _, result = run
    came, forecast = lines
    begin = result.summary.start / 1e9
    times = [begin + 15 * step for step in range(3 * 240)]
    known = [one for one in times if value_at(forecast, one) is not None]
    assert known
    assert len(known) < len(times) / 2, "between onsets nothing is forecast"
    assert known[0] - begin > 2 * ONSETS_S
    most = max(one for at in times if at >= known[0] and (one := value_at(came, at)) is not None)
    assert max(value_at(forecast, one) for one in known) == pytest.approx(most, rel=0.3)


def test_a_report_holds_them(run, lines):
    """The page has them, value by value."""
    folder, _ = run
    found = [one for one in report_data(folder)["history"].lines if one.kind == "forecast"]
    assert [(one.figure, set(one.values)) for one in found] == [
        (one.figure, set(one.values)) for one in lines
    ]


def test_a_run_in_which_nothing_is_forecast_has_its_report(tmp_path):
    """An HPA has forecasts on, and its load has no onsets: its observed load is drawn alone."""
    plain = small(duration="10m")
    asks = "metadata: {name: web, annotations: {horizontal.kubetide.io/forecast: calendar}}\nspec:\n  scaleTargetRef"
    manifest = plain.manifests[0].replace("metadata: {name: web}\nspec:\n  scaleTargetRef", asks)
    scenario = replace(plain, manifests=(manifest,))
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    found = [one for one in report_data(tmp_path)["history"].lines if one.kind == "forecast"]
    assert any(any(one.values) for one in found if one.figure == "came")
    assert not any(any(one.values) for one in found if one.figure == "forecast")
