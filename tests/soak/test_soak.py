"""Random scenarios of fixed seeds: fifty virtual hours in all, each checked from outside."""

from __future__ import annotations

import json

import msgspec
import pytest

pytest.importorskip(
    "google.protobuf", reason="protobuf is an extra, and some of the worlds have a cloud behind it"
)

from tests.soak import playing
from tests.soak.meddling import MEDDLING, meddling_of
from tests.soak.playing import play
from tests.soak.scenarios import FAULTS, scenario_of
from tests.soak.vertical import MODES, has_vpas, with_vpas

from kubetide.scheduling.filters.in_use import filters_in_use

MINUTES = 150
SEEDS = range(1000, 1020)
REPLAYED = 4
"""One run in so many is decided again from its records."""


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_run_breaks_nothing(seed):
    """No tick fails, no bound is passed and no pod is where it may not be, in a random world with faults."""
    played = play(seed, MINUTES, replays=seed % REPLAYED == 0)
    if played.wrong:
        pytest.fail("\n".join([f"seed {seed}:", *played.wrong, playing.command(seed, MINUTES)]))
    assert played.looks >= MINUTES
    assert played.bindings > 10


def test_the_seeds_meet_everything():
    """Between them the fixed seeds have every fault, kind of object, rule of placement and expander."""
    worlds = [scenario_of(seed, MINUTES) for seed in SEEDS]
    text = msgspec.json.encode(worlds).decode().replace('\\"', '"')
    assert {fault["kind"] for world in worlds for fault in world["faults"]} == set(FAULTS)
    assert len({world["flags"]["expander"] for world in worlds}) == 6
    assert {one for seed in SEEDS for one in meddling_of(seed)} == set(MEDDLING)
    vertical = [with_vpas(world, seed) for seed, world in zip(SEEDS, worlds, strict=True) if has_vpas(seed)]
    modes = {json.loads(one)["spec"]["updatePolicy"]["updateMode"] for one in _vpas(vertical)}
    assert modes == set(MODES)
    for word in (
        "StatefulSet",
        "DaemonSet",
        "CronJob",
        "PodDisruptionBudget",
        "HorizontalPodAutoscaler",
        "StorageClass",
        "podAffinity",
        "podAntiAffinity",
        "topologySpreadConstraints",
        "nodeSelector",
        "tolerations",
        "NoSchedule",
        "PreferNoSchedule",
        "mostAllocated",
    ):
        assert word in text, word
    assert scenario_of(1000, MINUTES) == worlds[0]


def _vpas(worlds):
    return [one for world in worlds for one in world["manifests"] if "VerticalPodAutoscaler" in one]


@pytest.mark.slow
def test_a_scheduler_that_looks_at_no_amounts_is_found(monkeypatch):
    """Pods that are put on full nodes make a run fail, and with it the command that plays it again."""
    for plugin in filters_in_use().capacity:
        monkeypatch.setattr(type(plugin), "needs", lambda *_: ())
    wrong = play(1000, 45, replays=False).wrong
    assert any("pods ask for" in one for one in wrong)
    assert playing.command(1000, 45) == "python -m tests.soak --seed 1000 --runs 1 --minutes 45"
