"""The plan against what came: what a run foretold, as it recorded it, in the figures, the dashboard's answer and the report."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.simulate.report import write_report
from kubetide.simulate.report.forecasts import forecasts_of
from kubetide.simulate.report.series import report_data
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenario import LoadSpec
from kubetide.web.history import History

ONSETS_S = 1800


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three hours in which the load jumps every half an hour, on an HPA that asks for forecasts."""
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


def test_onsets_are_foretold_and_come(run):
    """From the fourth onset on the load is foretold before it comes, and what came is near it."""
    folder, result = run
    data = report_data("run", result.timeline, result.summary, lambda times: forecasts_of(folder, times))
    (one,) = data["forecasts"]
    assert one["name"] == "default/web"
    rows = list(zip(data["time"], one["came"], one["foretold"], strict=True))
    known = [row for row in rows if row[2] is not None]
    assert known
    assert len(known) < len(rows) / 2, "between onsets nothing is foretold"
    first = known[0][0] - data["time"][0]
    assert first > 2 * ONSETS_S
    came = max(one for at, one, _ in rows if one is not None and at >= known[0][0])
    assert max(foretold for _, _, foretold in known) == pytest.approx(came, rel=0.3)


def test_the_dashboard_has_the_same_numbers(run):
    """Its answer holds both lines, with the values that the report draws."""
    folder, result = run
    past = History(folder).past(kind="forecast", name="", figure="", at="", window="", points=5000)
    assert [(one.name, one.figure) for one in past.lines] == [
        ("default/web", "came"),
        ("default/web", "foretold"),
    ]
    data = report_data("run", result.timeline, result.summary, lambda times: forecasts_of(folder, times))
    drawn = {value for value in data["forecasts"][0]["foretold"] if value is not None}
    assert drawn <= {value for value in past.lines[1].values if value is not None}


def test_a_run_in_which_nothing_is_foretold_has_its_report(tmp_path):
    """An HPA asks for forecasts, and its load has no onsets: what came is drawn alone."""
    plain = small(duration="10m")
    asks = "metadata: {name: web, annotations: {horizontal.kubetide.io/forecast: calendar}}\nspec:\n  scaleTargetRef"
    manifest = plain.manifests[0].replace("metadata: {name: web}\nspec:\n  scaleTargetRef", asks)
    scenario = replace(plain, manifests=(manifest,))
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    data = report_data("run", result.timeline, result.summary, lambda times: forecasts_of(tmp_path, times))
    (one,) = data["forecasts"]
    assert any(one["came"])
    assert not any(one["foretold"])


def test_a_report_holds_them(run, tmp_path):
    """They stand in the page; a run without forecasts has none."""
    folder, result = run
    page = tmp_path / "report.html"
    write_report(page, "run", result.timeline, result.summary, lambda times: forecasts_of(folder, times))
    text = page.read_text(encoding="utf-8")
    found = json.loads(text.partition('"forecasts":')[2].partition(',"services"')[0])
    assert [one["name"] for one in found] == ["default/web"]
    write_report(page, "run", result.timeline, result.summary)
    assert '"forecasts":[]' in page.read_text(encoding="utf-8")
    assert forecasts_of(tmp_path, [0.0]) == []
