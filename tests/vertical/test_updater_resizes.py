"""Rules of resizes in place: what is remembered of them, how long they are waited for, and boosts that end with them."""

from __future__ import annotations

import msgspec
import pytest
from tests.vertical import making
from tests.vertical.making import NOW, ago, pod, state, vpa

from kubetide.units.time import after, hours, minutes, seconds
from kubetide.vertical.annotations import boost_annotation
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.decide import decide, play, unboosting
from kubetide.vertical.updater.decision import Evict, Outcome, Resize
from kubetide.vertical.updater.memory import Memory
from kubetide.vertical.updater.rules.groups import Group
from kubetide.vertical.updater.rules.in_place import given_up

IN_PLACE = FeatureGates(in_place=True)
BOOSTS = FeatureGates(cpu_startup_boost=True)
PENDING, RUNNING = "PodResizePending", "PodResizeInProgress"
SAVED = '{"requests":{"cpu":"100m","memory":"100Mi"},"limits":{}}'


def resizing(kind, reason="", **more):
    return {"type": kind, "status": "True", "reason": reason, **more}


def ready(since):
    return {"type": "Ready", "status": "True", "lastTransitionTime": ago(since)}


def boosted(name, *, conditions, containers=("main",), of=("main",), phase="Running"):
    """Return a pod of which some containers have the CPU of their start."""
    notes = {boost_annotation(container): SAVED for container in of}
    one = pod(name, metadata={"annotations": notes}, conditions=conditions, phase=phase)
    main = one.spec.containers[0]
    all_of_them = tuple(msgspec.structs.replace(main, name=container) for container in containers)
    return msgspec.structs.replace(one, spec=msgspec.structs.replace(one.spec, containers=all_of_them))


def with_boost(mode, *, of_main=None, of_all=60):
    """Return a VPA that boosts for so many seconds; None: it does not say."""

    def lasting(duration):
        return {
            "cpu": {
                "type": "Factor",
                "factor": 2,
                **({} if duration is None else {"durationSeconds": duration}),
            }
        }

    policies = [{"containerName": "main", "startupBoost": lasting(of_main)}]
    more = {} if of_all is None else {"startupBoost": lasting(of_all)}
    return vpa(mode, resourcePolicy={"containerPolicies": policies}, **more)


def ended(found, now=NOW):
    """Return the resizes that end boosts now."""
    commands, _ = play(unboosting(found, now), lambda command: Outcome(command.due))
    return commands


def written(command):
    return {patch["path"]: patch["value"] for patch in command.resources}


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


def test_a_pod_that_comes_again_under_its_name_is_not_waited_for_anew():
    """As with upstream the time is that of the name: what a StatefulSet makes anew is evicted at once."""
    owner = "StatefulSet", "web"
    views = [making.WorkloadView("StatefulSet", "default", "web", selector="app=web", replicas=2)]
    more = {"conditions": [resizing(PENDING, "Deferred")], "owner": owner}
    pods = [pod(f"web-{n}", **more) for n in range(2)]
    found = state(pods, [vpa("InPlaceOrRecreate", target=owner)], views=views, eviction_tolerance=1.0)
    assert decide(found, NOW)[0] == []
    found.settings = msgspec.structs.replace(found.settings, use_admission_controller_status=False)
    found.apply(making.Delta(gone_pods=[("default", "web-0"), ("default", "web-1")]))
    assert decide(found, after(NOW, seconds(301)))[0] == []
    again = [pod(f"web-{n}", metadata={"uid": f"again-{n}"}, **more) for n in range(2)]
    found.apply(making.Delta(pods=again))
    assert [type(command) for command in decide(found, after(NOW, hours(2)))[0]] == [Evict, Evict]


@pytest.mark.parametrize("turned", [False, True])
def test_a_pending_resize_says_more_than_one_in_progress(turned):
    """Whatever the order of the conditions: one that is deferred is waited for though another one failed."""
    conditions = [resizing(PENDING, "Deferred"), resizing(RUNNING, "Error")]
    one = pod(conditions=conditions[::-1] if turned else conditions)
    group = Group(configured=2, tolerance=1, running=2)
    memory = Memory()
    assert given_up(one, group, memory, NOW) == ""
    assert given_up(one, group, memory, after(NOW, seconds(301))) == "ResizeDeferred"


@pytest.mark.parametrize("turned", [False, True])
def test_an_infeasible_resize_is_seen_beside_one_in_progress(turned):
    """Mode InPlace looks at the pending one first, too."""
    conditions = [resizing(PENDING, "Infeasible"), resizing(RUNNING)]
    conditions = conditions[::-1] if turned else conditions
    pods = [pod(f"web-{number}", conditions=conditions) for number in range(2)]
    found = state(pods, [vpa("InPlace")], gates=IN_PLACE)
    decide(found, NOW)
    assert sorted(found.memory.infeasible) == ["uid-web-0", "uid-web-1"]


def test_a_small_group_with_a_boosted_pod_is_updated_as_others_are():
    """It counts at all so that the boost can end; nothing keeps its other pods from being evicted."""
    pods = [boosted("web-0", conditions=[ready(seconds(5))]), pod("web-1")]
    found = state(
        pods,
        [vpa("Recreate", startupBoost={"cpu": {"type": "Factor", "factor": 2}})],
        gates=BOOSTS,
        min_replicas=3,
    )
    assert [command.pod[1] for command in decide(found, NOW)[0]] == ["web-1"]


# ── the end of a boost ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("of_main", "of_all", "passed", "ends"),
    [
        (None, 60, 59, False),  # the container's own boost does not say: that of all counts
        (None, 60, 61, True),
        (20, 60, 21, True),
        (90, 60, 61, False),
        (None, None, 0, True),
        (0, 60, 0, True),
    ],
)
def test_how_long_a_boost_lasts(of_main, of_all, passed, ends):
    """As the container's policy says, else as the VPA says; no time at all is over at once."""
    found = state(
        [boosted("web-0", conditions=[ready(seconds(passed))]), pod("web-1")],
        [with_boost("Off", of_main=of_main, of_all=of_all)],
        gates=BOOSTS,
    )
    assert [command.pod[1] for command in ended(found)] == (["web-0"] if ends else [])


def test_boosts_of_one_group_do_not_wait_for_each_other():
    """Each is measured against the pods that run, as if it were the only one."""
    pods = [boosted(f"web-{number}", conditions=[ready(seconds(61))]) for number in range(4)]
    found = state(pods, [with_boost("Off")], gates=BOOSTS)
    assert len(ended(found)) == 4
    found = state(pods, [with_boost("Off")], gates=BOOSTS, compatibility="1.8.0")
    assert len(decide(found, NOW)[0]) == 2


def test_a_pod_that_is_ready_since_nobody_knows_when_loses_its_boost():
    """The time that is missing is Go's zero time."""
    one = boosted("web-0", conditions=[{"type": "Ready", "status": "True"}])
    found = state([one, pod("web-1")], [with_boost("Off")], gates=BOOSTS)
    assert len(ended(found)) == 1


@pytest.mark.parametrize(
    ("more", "code"),
    [({"conditions": [resizing(RUNNING)]}, "ResizeWaits"), ({"phase": "Pending"}, "Pending")],
)
def test_a_boost_does_not_end_while_the_pod_is_busy(more, code):
    """With a resize under way, or before it runs, the pod is asked again later."""
    conditions = [ready(seconds(61)), *more.pop("conditions", ())]
    found = state(
        [boosted("web-0", conditions=conditions, **more), pod("web-1")], [with_boost("Off")], gates=BOOSTS
    )
    commands, result = play(unboosting(found, NOW), lambda command: Outcome(command.due))
    assert commands == []
    assert [reason.code for reason in result.reasons] == [code]
    assert result.next_unboost == after(NOW, seconds(10))


@pytest.mark.parametrize(("mode", "others"), [("Recreate", True), ("Off", False)])
def test_the_resize_that_ends_a_boost_updates_the_other_containers_too(mode, others):
    """Those that are still boosted stay; with mode Off nothing but the boost ends."""
    one = boosted(
        "web-0", conditions=[ready(seconds(61))], containers=("slow", "side", "main"), of=("slow", "side")
    )
    policies = [
        {
            "containerName": "side",
            "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 60}},
        },
        {
            "containerName": "*",
            "startupBoost": {"cpu": {"type": "Factor", "factor": 2, "durationSeconds": 600}},
        },
    ]
    found = state(
        [one, pod("web-1")], [vpa(mode, resourcePolicy={"containerPolicies": policies})], gates=BOOSTS
    )
    [command] = ended(found)
    own = {
        "/spec/containers/1/resources/requests/cpu": "100m",
        "/spec/containers/1/resources/requests/memory": "100Mi",
    }
    new = {
        "/spec/containers/2/resources/requests/cpu": "500m",
        "/spec/containers/2/resources/requests/memory": "500Mi",
    }
    assert written(command) == (own | new if others else own)
    assert [
        patch["path"].rpartition("~1")[2] for patch in command.annotations if patch["op"] == "remove"
    ] == ["side"]


def test_a_container_that_is_still_boosted_is_not_resized():
    """Also where the gate is off; where nothing else is to be resized, the pod is evicted as after any failure."""
    found = state(
        [boosted("web-0", conditions=[]), pod("web-1")], [vpa("InPlaceOrRecreate")], eviction_tolerance=1.0
    )
    assert [(type(command), command.pod[1]) for command in decide(found, NOW)[0]] == [
        (Resize, "web-1"),
        (Evict, "web-0"),
    ]


def test_a_boost_that_ends_while_the_rate_limit_holds_the_resize_ends_with_it():
    """What is resized is decided when the turn of the pod comes, not when it was queued."""
    pods = [pod("web-0"), boosted("web-1", conditions=[ready(seconds(40))])]
    found = state(pods, [with_boost("InPlaceOrRecreate")], eviction_tolerance=1.0, eviction_rate_limit=1 / 30)
    first, second = decide(found, NOW)[0]
    assert (first.pod[1], second.pod[1], second.due) == ("web-0", "web-1", after(NOW, seconds(30)))
    assert isinstance(second, Resize)
    assert [mark["op"] for mark in second.annotations] == ["remove", "add"]
