"""Which pods and values count, and when pods may go, by options of an HPA."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.horizontal import worlds
from tests.horizontal.option_states import KEY, NOW, OLD, codes, desired, state_of

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.explain.answers import explain
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.memory import MemoryEntry, OptionMemory
from kubetide.horizontal.metrics.types import Question
from kubetide.horizontal.options.annotations import PREFIX
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.state import Delta
from kubetide.units.time import format_duration, minutes, seconds


def test_only_pods_of_the_target_count():
    """A pod of somebody else with the same labels counts as upstream has it, and not where the annotation asks."""
    scale = worlds.scale(replicas=2, owners=("ReplicaSet/web-1",))
    owners = {"p0": "ReplicaSet/web-1", "p1": "ReplicaSet/web-1", "p2": "Job/migrate"}
    usage = {"p0": 200, "p1": 200, "p2": 0}
    world = {"pods": 3, "usage": usage, "scale": scale, "owners": owners}
    world["spec"] = {"target": 60}
    assert evaluate(state_of(**world), KEY, NOW).raw == 2
    found = state_of(**world, count_only_owned="true")
    assert evaluate(found, KEY, NOW).raw == 4
    assert explain(found, KEY, NOW).metrics[0].pods["ready"] == ("p0", "p1")
    assert explain(state_of(**world), KEY, NOW).metrics[0].pods["ready"] == ("p0", "p1", "p2")


def test_values_of_pods_of_others_do_not_count_either():
    """Of a Pods metric, the value of a pod that the target does not own plays no part in the average."""
    scale = worlds.scale(replicas=2, owners=("ReplicaSet/web-1",))
    owners = {"p0": "ReplicaSet/web-1", "p1": "ReplicaSet/web-1", "p2": "Job/migrate"}
    world = {"pods": 3, "usage": {}, "scale": scale, "owners": owners}
    question = Question("pods", "default", "rps", pods="app=web")
    reply = Reply(question, pods=("p0", "p1", "p2"), milli=np.array([20_000, 20_000, 0], np.int64))
    for options, average in (({}, "13333m"), ({"count_only_owned": "true"}, "20")):
        state = state_of(**world, spec={"metrics": [worlds.of_pods("10")]}, **options)
        state.apply(Delta(values=[reply]))
        found = evaluate(state, KEY, NOW)
        assert (found.raw, found.metrics[0].pods.current.average_value) == (4, average)


def test_new_pods_of_a_rollout_do_not_drive_the_ratio():
    """A warm-up that burns CPU adds no replicas; the old pods' load still does."""
    scale = worlds.scale(
        replicas=2, owners=("ReplicaSet/web-1", "ReplicaSet/web-2"), starting=("ReplicaSet/web-2",)
    )
    owners = {"p0": "ReplicaSet/web-1", "p1": "ReplicaSet/web-1", "p2": "ReplicaSet/web-2"}
    warm = {"usage": {"p0": 100, "p1": 100, "p2": 800}, "pods": 3, "scale": scale, "owners": owners}
    assert evaluate(state_of(**warm), KEY, NOW).raw == 10
    found = state_of(**warm, count_old_during_rollout="true")
    assert evaluate(found, KEY, NOW).raw == 2
    assert explain(found, KEY, NOW).metrics[0].pods["missing"] == ("p2",)
    loaded = {**warm, "usage": {"p0": 300, "p1": 300, "p2": 0}}
    assert evaluate(state_of(**loaded, count_old_during_rollout="true"), KEY, NOW).raw == 6


@pytest.mark.parametrize(("age", "replicas"), [(30, 4), (120, 4), (121, 2)])
def test_values_that_are_too_old_count_as_failed(age, replicas):
    """Values count up to the allowed age, and the explanation says how old they are."""
    metric = worlds.external({"averageValue": "10"})
    reply = Reply(
        Question("external", "default", "queue"),
        milli=np.array([40_000], np.int64),
        measured=NOW - seconds(age),
    )
    state = state_of(spec={"metrics": [metric]}, max_age="2m")
    state.apply(Delta(values=[reply]))
    found = explain(state, KEY, NOW)
    assert found.desired == replicas
    if replicas == 2:
        assert found.metrics[0].problem.endswith(
            "the value is 2m1s old, older than the 2m0s of horizontal.kubetide.io/max-age"
        )
    assert found.metrics[0].age == seconds(age)
    assert any(f"(measured {format_duration(seconds(age))} before)" in line for line in found.lines())


@pytest.mark.parametrize(
    ("rose", "ready", "found"),
    [
        (minutes(1), "False", 4),
        (minutes(1), "True", 2),
        (minutes(5), "False", 2),
        (None, "False", 2),
    ],
    ids=["not ready", "ready", "too long ago", "never raised"],
)
def test_a_scale_down_waits_for_the_pods_of_the_last_scale_up(rose, ready, found):
    """Added pods are not removed before they serve, for five minutes at most; without the option they are."""
    pods = [worlds.pod(f"p{index}", ready="True" if index < 2 else ready) for index in range(4)]

    def state(**annotations):
        view = msgspec.structs.replace(
            worlds.hpa(),
            annotations={PREFIX + name.replace("_", "-"): text for name, text in annotations.items()},
        )
        memory = OptionMemory(rose_at=None if rose is None else NOW - rose)
        return worlds.state_of(
            hpas=[view],
            pods=pods,
            scales=[worlds.scale(replicas=4)],
            usage={("default", f"p{index}"): 50 for index in range(4)},
            memory=[MemoryEntry(*KEY, OLD, options=memory)],
        )

    assert evaluate(state(), KEY, NOW).desired == 2
    verdict = evaluate(state(hold_until_ready="true"), KEY, NOW)
    assert verdict.desired == found
    if found == 4:
        assert verdict.notes[-1].reason == "HeldUntilReady"
        assert "HeldUntilReady" in codes(state(hold_until_ready="true"))


def test_bounds_hold_before_pods_are_ready():
    """A maximum that was lowered is obeyed at once."""
    memory = OptionMemory(rose_at=NOW - minutes(1))
    pods = {"scale": worlds.scale(replicas=4), "memory": memory, "spec": {"maximum": 3}}
    assert desired(state_of(100, hold_until_ready="true", **pods)) == 3


def test_a_scale_up_is_remembered_for_the_hold():
    """The time of the last change upwards stays until the next one."""
    state = state_of(200, hold_until_ready="true")
    absorb(state, decide(state, NOW), [ScaleOutcome(*KEY, NOW)])
    assert state.options[KEY] == OptionMemory(rose_at=NOW)
