"""Checkpoints: what is written, what is read at the start, and what is deleted."""

from __future__ import annotations

import pytest
from tests.vertical.recommender.running import WEB, Run, pod, vpa

from kubetide.objects.vpa import (
    CheckpointStatus,
    HistogramCheckpoint,
)
from kubetide.units.time import minutes
from kubetide.vertical.recommender.decide import checkpoints
from kubetide.vertical.recommender.facts.views import CheckpointView

MIB = 1 << 20


@pytest.mark.parametrize(
    ("status", "why"),
    [
        (CheckpointStatus(version="v2"), "unsupported checkpoint version v2"),
        (
            CheckpointStatus(version="v3", cpu_histogram=HistogramCheckpoint(total_weight=-1.0)),
            "cannot load checkpoint with negative weight -1",
        ),
        (
            CheckpointStatus(version="v3", cpu_histogram=HistogramCheckpoint(bucket_weights={"999": 1})),
            "checkpoint has bucket 999 that is exceeding histogram buckets 176",
        ),
        (
            CheckpointStatus(version="v3", cpu_histogram=HistogramCheckpoint(bucket_weights={"x": 1})),
            "checkpoint has a bucket that is no number",
        ),
        (
            CheckpointStatus(version="v3", cpu_histogram=HistogramCheckpoint(total_weight=float("nan"))),
            "cannot load checkpoint with negative weight nan",
        ),
    ],
)
def test_a_broken_checkpoint_is_named_and_passed_over(status, why):
    """A broken checkpoint leaves nothing behind, and the pass says which and why."""
    run = Run()
    broken = CheckpointView("shop", "web-app", "web", "app", status)
    good = CheckpointView("shop", "web-side", "web", "side", CheckpointStatus(version="v3"))
    run.tick(vpas=[vpa()], pods=[], load=[broken, good])
    [problem] = run.result.problems
    assert problem.startswith(f"cannot load checkpoint for VPA shop/web. Reason: {why}")
    assert list(run.state.vpas[WEB].loaded) == ["side"]
    assert not run.state.aggregates.cpu.total.any()


def test_checkpoints_carry_history_over_a_restart():
    """A new process that loads the checkpoints recommends the same CPU as the old one."""
    run = Run()
    for minute in range(1, 300):
        row = ("web-1", "app", 100 + 7 * minute % 900, 300 * MIB)
        run.tick(row, vpas=[vpa()] if minute == 1 else [], pods=[pod()] if minute == 1 else [])
    stored = list(checkpoints(run.state, [WEB], run.now))
    other = Run()
    other.now = run.now
    other.tick(vpas=[vpa()], pods=[pod()], load=stored)
    assert other.target()["cpu"] == run.target()["cpu"]


def test_a_checkpoint_with_less_than_no_samples_counts():
    """A negative number of samples is subtracted, as upstream does: no confidence, so the lower bound is high."""
    status = CheckpointStatus(
        version="v3",
        total_samples_count=-144,
        first_sample_start="2026-03-01T08:00:00Z",
        last_sample_start="2026-03-02T08:00:00Z",
        cpu_histogram=HistogramCheckpoint(
            reference_timestamp="2026-03-02T00:00:00Z", bucket_weights={"20": 10_000}, total_weight=1.0
        ),
    )
    run = Run()
    run.tick(vpas=[vpa()], pods=[], load=[CheckpointView("shop", "web-app", "web", "app", status)])
    [found] = run.status().recommendation.container_recommendations
    assert (found.lower_bound["cpu"], found.target["cpu"], found.upper_bound["cpu"]) == (
        "418m",
        "410m",
        "25m",
    )
    [stored] = checkpoints(run.state, [WEB], run.now)
    assert stored.status.total_samples_count == -144


def test_the_running_window_is_not_in_a_checkpoint():
    """The peak of the running window is not in the checkpoint, and stays in memory."""
    run = Run()
    run.tick(("web-1", "app", 100, 300 * MIB), vpas=[vpa()], pods=[pod()])
    [stored] = checkpoints(run.state, [WEB], run.now)
    assert stored.status.memory_histogram.bucket_weights is None
    assert run.state.aggregates.memory.total.sum() > 0


def test_stored_checkpoints_without_a_vpa_are_deleted_after_ten_minutes():
    """Checkpoints whose VPA was deleted are garbage, those of VPAs of other recommenders are not."""
    run = Run()
    other = vpa("other", recommenders=("special",))
    stored = [CheckpointView("shop", f"{name}-app", name) for name in ("web", "other", "gone")]
    assert run.tick(vpas=[vpa(), other], pods=[], checkpoints=stored).deletions == ()
    commands = run.tick(after=minutes(11))
    assert commands.deletions == (("shop", "gone-app"),)
    assert run.tick(after=minutes(11)).deletions == ()
