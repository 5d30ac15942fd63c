"""Ticks with the result of the last one are left out, and the output of a run does not show it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small
from tests.soak import playing

from kubetide.horizontal import decide as horizontal
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.nodes.controller.unchanged_ticks import UnchangedTicks
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import FaultSpec


def left_behind(folder):
    """The bytes of all records, with their indexes and figures."""
    found = [path for path in sorted(folder.rglob("*")) if path.parent.name == "records" and path.is_file()]
    return {path.name: path.read_bytes() for path in found}


class Counted:
    """Counts the ticks of the node loop that are left out."""

    def __init__(self, monkeypatch):
        self.ticks = self.rested = 0
        take = UnchangedTicks.take

        def counted(rest, *args, **named):
            found = take(rest, *args, **named)
            self.ticks += 1
            self.rested += found is not None
            return found

        monkeypatch.setattr(UnchangedTicks, "take", counted)


def without(monkeypatch):
    """Run every tick in full, and make every verdict anew."""
    monkeypatch.setattr(UnchangedTicks, "take", lambda *_, **__: None)
    monkeypatch.setattr(horizontal, "evaluate_unless_unchanged", evaluate)


@pytest.mark.parametrize("kind", ["", "watch-expiry", "api-error", "cloud-error", "node-failure"])
def test_a_run_leaves_the_same_bytes_behind(kind, tmp_path, monkeypatch):
    """With and without a fault: records, indexes and figures are equal, and most ticks of the quiet run are left out."""
    faults = (FaultSpec(kind=kind, start="12m", end="14m", probability=0.5),) if kind else ()
    scenario = small(duration="40m", faults=faults)
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        run_simulation(scenario, base=tmp_path, out=tmp_path / "a", seed=1, warn=print)
    without(monkeypatch)
    run_simulation(scenario, base=tmp_path, out=tmp_path / "b", seed=1, warn=print)
    assert left_behind(tmp_path / "a") == left_behind(tmp_path / "b")
    assert counted.rested > 0.3 * counted.ticks


TABLE = """apiVersion: autoscaling.cloud.tencent.com/v1
kind: HorizontalPodCronscaler
metadata: {name: office-hours}
spec:
  scaleTarget: {apiVersion: apps/v1, kind: Deployment, name: batch}
  crons:
  - {name: opening, schedule: "0 35 * * * *", targetSize: 6}
"""


def test_a_run_with_a_time_table_rests_until_nodes_are_asked_for(tmp_path, monkeypatch):
    """So it is where a rise in half an hour is on the board: nodes are asked for in the same tick as without any rest."""
    base = small(duration="40m")
    batch = base.manifests[0].split("---")[0].replace("web", "batch").replace("200m", "1500m")
    base = replace(
        base, manifests=(*base.manifests, batch, TABLE), loops=("schedules", "horizontal", "nodes")
    )
    with monkeypatch.context() as patched:
        counted = Counted(patched)
        ran = run_simulation(base, base=tmp_path, out=tmp_path / "a", seed=1, warn=print)
    without(monkeypatch)
    run_simulation(base, base=tmp_path, out=tmp_path / "b", seed=1, warn=print)
    assert left_behind(tmp_path / "a") == left_behind(tmp_path / "b")
    assert max(ran.timeline.nodes["general"]) == 4, "some are bought"
    assert counted.rested > 0.3 * counted.ticks


@pytest.mark.parametrize("seed", [2003, 2011])
def test_a_random_world_leaves_the_same_bytes_behind(seed, tmp_path, monkeypatch):
    """So does one that is drawn, with faults and meddlers; and its records are decided again to the same bytes."""
    for name in ("a", "b"):
        given = playing.scenario_of(seed, 50)
        (tmp_path / name).mkdir()
        path = playing.write(given, seed, 50, tmp_path / name)
        playing._played(path, given, seed)
        without(monkeypatch)
    assert left_behind(tmp_path / "a") == left_behind(tmp_path / "b")
    assert replay(tmp_path / "a" / "records").differences == ()
