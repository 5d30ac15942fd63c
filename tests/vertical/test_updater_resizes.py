"""Rules of resizes in place: what is remembered of them, and how long they are waited for."""

from __future__ import annotations

import msgspec
import pytest
from tests.vertical import making
from tests.vertical.making import NOW, ago, pod, state, vpa

from kubetide.units.time import after, minutes, seconds
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.decision import Evict, Outcome, Resize
from kubetide.vertical.updater.memory import Memory
from kubetide.vertical.updater.rules.groups import Group
from kubetide.vertical.updater.rules.in_place import given_up

IN_PLACE = FeatureGates(in_place=True)
PENDING, RUNNING = "PodResizePending", "PodResizeInProgress"


def resizing(kind, reason="", **more):
    return {"type": kind, "status": "True", "reason": reason, **more}


# ── what is remembered ──────────────────────────────────────────────────────────────────────────


def test_an_infeasible_resize_is_remembered_as_the_status_recommends():
    """A limit that the VPA's policy lowers afterwards is no lower recommendation."""
    found = state([pod("web-0"), pod("web-1")], [vpa("InPlace")], gates=IN_PLACE)
    decide(found, NOW, lambda command: Outcome(command.due, "no", node_capacity=True))
    policy = {"containerPolicies": [{"containerName": "main", "maxAllowed": {"cpu": "450m"}}]}
    found.vpas["default", "web"] = vpa("InPlace", resourcePolicy=policy)
    commands, result = decide(found, NOW)
    assert commands == []
    assert {note.reason for note in result.events} == {"InPlaceResizeSkipped"}


def test_a_lower_recommendation_that_is_raised_again_is_not_tried():
    """What the pod would get must be lower, too; no event says so."""
    found = state([pod("web-0"), pod("web-1")], [vpa("InPlace")], gates=IN_PLACE)
    decide(found, NOW, lambda command: Outcome(command.due, "no", node_capacity=True))
    policy = {"containerPolicies": [{"containerName": "main", "minAllowed": {"cpu": "600m"}}]}
    found.vpas["default", "web"] = vpa("InPlace", cpu="400m", resourcePolicy=policy)
    commands, result = decide(found, NOW)
    assert (commands, result.events) == ([], [])
    assert "InfeasibleBefore" in {reason.code for reason in result.reasons}


def test_an_infeasible_resize_of_a_pod_that_is_not_to_be_updated_is_not_remembered():
    """Its turn never comes, so it is no attempt."""
    conditions = [resizing(PENDING, "Infeasible")]
    near = [
        pod(f"web-{n}", cpu="490m", memory="490Mi", age=minutes(5), conditions=conditions) for n in range(2)
    ]
    found = state(near, [vpa("InPlace")], gates=IN_PLACE)
    assert decide(found, NOW)[0] == []
    assert found.memory.infeasible == {}


def test_an_infeasible_resize_of_a_pod_that_is_being_deleted_is_forgotten():
    """As if the pod were gone."""
    found = state([pod("web-0"), pod("web-1"), pod("web-2")], [vpa("InPlace")], gates=IN_PLACE)
    decide(found, NOW, lambda command: Outcome(command.due, "no", node_capacity=True))
    leaving = pod("web-0", metadata={"deletionTimestamp": ago(seconds(1))})
    found.apply(making.Delta(pods=[leaving], lease=found.lease))
    decide(found, NOW)
    assert sorted(found.memory.infeasible) == ["uid-web-1", "uid-web-2"]


# ── how long it is waited for ───────────────────────────────────────────────────────────────────


def test_a_resize_is_waited_for_from_when_it_was_first_seen():
    """The five minutes do not begin with the patch, and a later resize does not begin them anew."""
    calm = [pod("web-0"), pod("web-1")]
    found = state(calm, [vpa("InPlaceOrRecreate")], eviction_tolerance=1.0)
    assert len(decide(found, NOW)[0]) == 2
    assert found.memory.attempts == {}

    def played(pods, passed):
        found.apply(making.Delta(pods=pods, lease=found.lease))
        return decide(found, after(NOW, seconds(passed)))[0]

    found.settings = msgspec.structs.replace(found.settings, use_admission_controller_status=False)
    deferred = [pod(f"web-{n}", conditions=[resizing(PENDING, "Deferred")]) for n in range(2)]
    assert played(deferred, 60) == []
    assert played(deferred, 330) == []
    assert [type(command) for command in played(calm, 340)] == [Resize, Resize]
    assert [type(command) for command in played(deferred, 361)] == [Evict, Evict]


@pytest.mark.parametrize("turned", [False, True])
def test_a_pending_resize_says_more_than_one_in_progress(turned):
    """Whatever the order of the conditions: one that is deferred is waited for though another one failed."""
    conditions = [resizing(PENDING, "Deferred"), resizing(RUNNING, "Error")]
    one = pod(conditions=conditions[::-1] if turned else conditions)
    group = Group(configured=2, tolerance=1, running=2)
    memory = Memory()
    assert given_up(one, group, memory, NOW) == ""
    assert given_up(one, group, memory, after(NOW, seconds(301))) == "ResizeDeferred"
