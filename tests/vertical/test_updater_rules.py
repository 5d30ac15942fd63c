"""Rules of the updater that the recorded loops do not reach: those of 1.8.1, the rate limit, bad input."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.vertical import making
from tests.vertical.making import NOW, pod, state, vpa

from kubetide.objects.vpa import PodRecommendation, VpaStatus
from kubetide.units.time import after, hours, minutes, seconds
from kubetide.vertical.annotations import boost_annotation
from kubetide.vertical.gates import FeatureGates
from kubetide.vertical.updater.core import (
    Dialogue,
    UpdaterCore,
    encode_commands,
    encode_delta,
    encode_outcomes,
)
from kubetide.vertical.updater.decide import decide, deciding, play, unboosting
from kubetide.vertical.updater.decision import Evict, Outcome, Resize
from kubetide.vertical.updater.memory import Limiter, Memory
from kubetide.vertical.updater.rules.groups import Group
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.workloads import WorkloadView


def pods_of(commands):
    return [command.pod[1] for command in commands]


def codes(result, subject):
    return [reason.code for reason in result.reasons if reason.subject == subject]


def daemon_set(**numbers):
    return [WorkloadView("DaemonSet", "default", "agent", selector="app=web", **numbers)]


@pytest.mark.parametrize(
    ("compatibility", "numbers", "evicted"),
    [
        ("1.8.1", {"desired": 4, "ready": 0}, 2),
        ("1.8.1", {"desired": 0, "ready": 4}, 0),
        ("1.8.0", {"desired": 4, "ready": 0}, 0),
        ("1.8.0", {"desired": 0, "ready": 4}, 2),
    ],
)
def test_a_daemon_set_should_have_its_desired_number_of_pods(compatibility, numbers, evicted):
    """1.8.0 took the ready ones; with none of them the group is left alone."""
    pods = [pod(f"a-{number}", owner=("DaemonSet", "agent")) for number in range(4)]
    found = state(
        pods,
        [vpa(target=("DaemonSet", "agent"))],
        views=daemon_set(**numbers),
        compatibility=compatibility,
    )
    commands, _ = decide(found, NOW)
    assert len(commands) == evicted


@pytest.mark.parametrize(
    ("compatibility", "since", "lasted", "updated"),
    [
        ("1.8.1", minutes(9), minutes(9), True),
        ("1.8.1", minutes(11), minutes(9), False),
        ("1.8.0", minutes(11), minutes(9), True),
        ("1.8.1", minutes(9), minutes(11), False),
        ("1.8.0", minutes(9), minutes(11), False),
    ],
)
def test_an_oom_kill_counts_if_it_was_soon_after_the_start_and_lately(compatibility, since, lasted, updated):
    """1.8.0 did not ask how long ago it was."""
    killed = making.oom(lasted=lasted, since=since)
    inside = [
        pod(f"web-{n}", cpu="400m", memory="400Mi", age=hours(1), containerStatuses=killed) for n in range(2)
    ]
    commands, _ = decide(state(inside, [vpa()], compatibility=compatibility), NOW)
    assert bool(commands) is updated


@pytest.mark.parametrize(("listed", "evicted"), [(None, 2), ("main", 2), ("other", 0), ("", 0), ("Main", 2)])
def test_only_containers_that_admission_saw_count(listed, evicted):
    """An empty list is a list of none; one with an entry that is no name is not believed."""
    notes = {} if listed is None else {"annotations": {"vpaObservedContainers": listed}}
    pods = [pod(f"web-{number}", metadata=notes) for number in range(2)]
    assert len(decide(state(pods, [vpa()], eviction_tolerance=1.0), NOW)[0]) == evicted


@pytest.mark.parametrize(("target", "evicted"), [("100500u", 0), ("102m", 2)])
def test_a_requirement_compares_whole_thousandths(target, evicted):
    """Rounded up on both sides, as upstream does: 100.1m and 100.5m are the same."""
    change = {"resources": ["cpu"], "changeRequirement": "TargetHigherThanRequests"}
    policy = {"updateMode": "Recreate", "evictionRequirements": [change]}
    pods = [pod(f"web-{number}", cpu="100100u") for number in range(2)]
    found = state(pods, [vpa(cpu=target, updatePolicy=policy)], eviction_tolerance=1.0)
    assert len(decide(found, NOW)[0]) == evicted


def test_a_pod_without_a_recommendation_is_not_updated():
    """Not even where every difference is enough for an update, as none is: all its containers may be Off."""
    nothing = replace(vpa(), status=VpaStatus(recommendation=PodRecommendation()))
    found = state(
        [pod(f"web-{number}") for number in range(2)],
        [nothing],
        eviction_tolerance=1.0,
        pod_update_threshold=0.0,
    )
    commands, result = decide(found, NOW)
    assert commands == []
    assert "EvictionRequirementsNotMet" in codes(result, "default/web-0")


BOOSTED = {
    boost_annotation("main"): '{"requests":{"cpu":"100m","memory":"100Mi"},"limits":{}}',
}


def boosted(name="web-0", *, ready):
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": making.ago(ready)}]
    return pod(name, cpu="900m", metadata={"annotations": BOOSTED}, conditions=conditions)


BOOST = {"startupBoost": {"cpu": {"type": "Factor", "factor": 3, "durationSeconds": 60}}}
GATE = FeatureGates(cpu_startup_boost=True)


def test_a_boost_ends_outside_of_the_loop():
    """The loop leaves boosted pods out; the end of a boost needs no lease, and says when the next one ends."""
    pods = [boosted("web-0", ready=seconds(61)), boosted("web-1", ready=seconds(20))]
    found = state(pods, [vpa("Initial", **BOOST)], gates=GATE)
    found.lease = None
    assert decide(found, NOW)[0] == []
    commands, result = play(unboosting(found, NOW), lambda command: Outcome(command.due))
    [command] = commands
    assert isinstance(command, Resize)
    assert command.pod == ("default", "web-0")
    assert {
        "op": "add",
        "path": "/spec/containers/0/resources/requests/cpu",
        "value": "500m",
    } in command.resources
    assert result.next_unboost == after(NOW, seconds(40))


def test_the_end_of_a_boost_that_fails_is_tried_again():
    """Ten seconds later, as also where the group has no budget for it."""
    pods = [boosted(f"web-{number}", ready=seconds(61)) for number in range(4)]
    found = state(pods, [vpa("Initial", **BOOST)], gates=GATE, views=making.workloads(8))
    commands, result = play(unboosting(found, NOW), lambda command: Outcome(command.due))
    assert commands == []
    assert result.next_unboost == after(NOW, seconds(10))
    found = state(pods, [vpa("Initial", **BOOST)], gates=GATE)
    commands, result = play(unboosting(found, NOW), lambda command: Outcome(command.due, "refused"))
    assert len(commands) == 4
    assert result.next_unboost == after(NOW, seconds(10))


def test_boosts_end_in_the_loop_under_the_older_rule():
    """1.8.0 knows no other place."""
    pods = [boosted("web-0", ready=seconds(61)), boosted("web-1", ready=seconds(20))]
    found = state(pods, [vpa("Initial", **BOOST)], gates=GATE, compatibility="1.8.0")
    assert pods_of(decide(found, NOW)[0]) == ["web-0"]
    assert play(unboosting(found, NOW), lambda command: Outcome(command.due))[0] == []


def test_a_refused_eviction_leaves_its_budget_to_the_next_pod():
    """The pods after it are tried as if it had not been."""
    found = state([pod(f"web-{number}") for number in range(4)], [vpa()])
    refused = iter(("too many", "too many", "", ""))
    commands, result = decide(found, NOW, lambda command: Outcome(command.due, next(refused)))
    assert pods_of(commands) == ["web-0", "web-1", "web-2", "web-3"]
    assert [reason.code for reason in result.reasons if "Evict" in reason.code] == [
        "EvictionFailed",
        "EvictionFailed",
        "Evicted",
        "Evicted",
    ]


def test_withheld_commands_are_neither_done_nor_failed():
    """A run that only advises chooses the pods that one loop would change, remembers nothing, and reports nothing."""
    found = state([pod(f"web-{number}") for number in range(4)], [vpa("InPlaceOrRecreate")])
    commands, result = decide(found, NOW, lambda command: Outcome(command.due, withheld=True))
    assert pods_of(commands) == ["web-0", "web-1"]
    assert (result.events, found.memory.attempts) == ([], {})
    found = state([pod(f"web-{number}") for number in range(4)], [vpa("Recreate")])
    commands, result = decide(found, NOW, lambda command: Outcome(command.due, withheld=True))
    assert pods_of(commands) == ["web-0", "web-1"]
    assert result.events == []


def test_a_node_that_can_never_hold_a_resize_is_remembered():
    """Mode InPlace tries again only when a target is lower than the one that was refused."""
    found = state([pod("web-0"), pod("web-1")], [vpa("InPlace")], gates=FeatureGates(in_place=True))

    def refused(command):
        return Outcome(command.due, "no", node_capacity=True)

    assert len(decide(found, NOW, refused)[0]) == 2
    assert sorted(found.memory.infeasible) == ["uid-web-0", "uid-web-1"]
    commands, result = decide(found, NOW, refused)
    assert commands == []
    assert {note.reason for note in result.events} == {"InPlaceResizeSkipped"}
    found.vpas["default", "web"] = vpa("InPlace", cpu="400m")
    assert len(decide(found, NOW)[0]) == 2


def test_deleted_pods_are_forgotten_after_a_day():
    """Memory does not grow with pods that come and go; a pod of the same name may come soon."""
    conditions = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
    pods = [pod(f"web-{number}", conditions=conditions) for number in range(2)]
    found = state(pods, [vpa("InPlaceOrRecreate")], eviction_tolerance=1.0)
    decide(found, NOW)
    assert sorted(found.memory.attempts) == ["default/web-0", "default/web-1"]
    found.settings = replace(found.settings, use_admission_controller_status=False)
    found.apply(making.Delta(gone_pods=[("default", "web-0")]))
    decide(found, after(NOW, hours(24)))
    assert sorted(found.memory.attempts) == ["default/web-0", "default/web-1"]
    decide(found, after(NOW, hours(25)))
    assert sorted(found.memory.attempts) == ["default/web-1"]


def test_one_bad_object_never_stops_the_others():
    """A recommendation and a pod that cannot be read leave a reason; other pods are updated."""
    broken = vpa(name="broken", target=("Deployment", "bad"), cpu="so much")
    views = [
        *making.workloads(2),
        WorkloadView("Deployment", "default", "bad", selector="app=web", replicas=2),
        WorkloadView("ReplicaSet", "default", "bad-1", owner=("Deployment", "bad"), replicas=2),
    ]
    pods = [
        *(pod(f"bad-{number}", owner=("ReplicaSet", "bad-1")) for number in range(2)),
        pod("web-0"),
        pod("web-1", cpu="nothing at all"),
    ]
    commands, result = decide(state(pods, [broken, vpa()], views=views), NOW)
    assert pods_of(commands) == ["web-0"]
    assert codes(result, "default/bad-0") == ["BadRecommendation", "InRangeAndSmallChange"]
    assert "BadRecommendation" in codes(result, "default/web-1")


@pytest.mark.parametrize(
    ("views", "code"),
    [
        ([], "VpaWithoutTarget"),
        (
            [
                WorkloadView("Deployment", "default", "web", owner=("Deployment", "web"), selector="app=web"),
                WorkloadView("ReplicaSet", "default", "web-1", owner=("Deployment", "web"), replicas=2),
            ],
            None,
        ),
    ],
)
def test_owners_that_lead_nowhere(views, code):
    """The VPA's reason names a missing target; a circle of owners ends the search, and the pods stay."""
    commands, result = decide(state([pod("web-0"), pod("web-1")], [vpa()], views=views), NOW)
    assert commands == []
    assert codes(result, "default/web") == ([code] if code else [])


def test_nothing_is_changed_on_a_cache_that_may_not_be_believed():
    """The hold is named, and no pod is evaluated."""
    found = state([pod("web-0"), pod("web-1")], [vpa()])
    found.apply(making.Delta(lease=found.lease, holds=["a new list of pods lacked many"]))
    commands, result = decide(found, NOW)
    assert (commands, result.skipped) == ([], "held")
    assert [reason.fields["detail"] for reason in result.reasons] == ["a new list of pods lacked many"]


def test_a_loop_is_the_same_from_a_dumped_state():
    """State in, commands out: what is dumped decides the same, byte for byte."""
    found = state([pod(f"web-{number}") for number in range(6)], [vpa("InPlaceOrRecreate")])
    decide(found, NOW)
    core = UpdaterCore()
    core.apply(encode_delta(found.dump()), full=True)
    later = after(NOW, seconds(30))
    expected, _ = decide(found, later)
    first = core.decide(later)
    assert first == encode_commands(expected[0])


# ── the rate limit ──────────────────────────────────────────────────────────────────────────────


def test_evictions_wait_for_the_rate_limit_and_end_with_the_loop():
    """One in 25 s: the loop of a minute lets three through, and the fourth ends it."""
    found = state([pod(f"web-{number}") for number in range(8)], [vpa()], eviction_rate_limit=0.04)
    commands, result = decide(found, NOW)
    assert [(command.due - NOW) // seconds(1) for command in commands] == [0, 25, 50]
    assert codes(result, "default/web-3")[-1] == "RateLimited"
    assert all(isinstance(command, Evict) for command in commands)


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_slow_loop_ends_with_its_interval(mode):
    """Also without a rate limit nothing begins a minute after the loop did; a later loop looks at the pods anew."""
    found = state([pod(f"web-{number}") for number in range(8)], [vpa(mode)], eviction_tolerance=1.0)
    commands, result = decide(found, NOW, lambda command: Outcome(after(command.due, seconds(20))))
    assert [(command.due - NOW) // seconds(1) for command in commands] == [0, 20, 40]
    assert codes(result, "default/web-3")[-1] == "RateLimited"
    [counts] = result.counts.values()
    assert [*counts.failed_evictions, *counts.failed_resizes] == [
        "EvictionRateLimiterWaitFailed" if mode == "Recreate" else "InPlaceUpdateRateLimiterWaitFailed"
    ]


def test_no_vpa_waits_for_ever_where_the_rate_limit_ends_every_loop():
    """What a budget of the cluster refuses uses the rate limit; the next loop begins with another VPA."""
    views = [
        WorkloadView("ReplicaSet", "default", name, selector="app=web", replicas=2)
        for name in ("a", "b", "c")
    ]
    pods = [pod(f"{view.name}-{n}", owner=("ReplicaSet", view.name)) for view in views for n in range(2)]
    vpas = [vpa(name=view.name, target=("ReplicaSet", view.name)) for view in views]
    found = state(pods, vpas, views=views, eviction_rate_limit=1 / 61, use_admission_controller_status=False)

    def refused(command):
        return Outcome(command.due, "a PodDisruptionBudget" if command.vpa[1] == "a" else "")

    loops = [pods_of(decide(found, after(NOW, minutes(passed)), refused)[0]) for passed in (0, 2, 4, 6)]
    assert loops == [["a-0"], ["b-0"], ["c-0"], ["a-1"]]


@pytest.mark.parametrize("mode", ["Recreate", "InPlaceOrRecreate"])
def test_a_pod_that_is_always_refused_keeps_no_other_of_its_vpa_waiting(mode):
    """Where the rate limit lets one through in each loop, the refused pod is tried again behind the others."""
    pods = [pod(f"web-{number}") for number in range(4)]
    rates = {"eviction_rate_limit": 1 / 61, "use_admission_controller_status": False}
    found = state(pods, [vpa(mode)], eviction_tolerance=1.0, **rates)

    def refused(command):
        return Outcome(command.due, "a webhook" if command.pod[1] == "web-0" else "")

    tried = []
    for passed in (0, 2, 4):
        [name] = pods_of(decide(found, after(NOW, minutes(passed)), refused)[0])
        tried.append(name)
        if name != "web-0":
            del found.pods["default", name]
    assert tried == ["web-0", "web-1", "web-2"]


@given(
    rate=st.floats(0.01, 100),
    burst=st.integers(1, 5),
    pauses=st.lists(st.integers(0, 30_000_000_000), max_size=30),
)
def test_a_limiter_lets_through_no_more_than_its_rate(rate, burst, pauses):
    """In any stretch of time at most burst and what the rate gives."""
    limiter, now, dues = Limiter(), NOW, []
    for pause in pauses:
        now = after(now, pause)
        due = limiter.take(now, rate, burst, after(now, hours(10)))
        assert due is not None
        assert due >= now
        now = due
        dues.append(due)
    for first in range(len(dues)):
        for last in range(first, len(dues)):
            allowed = burst + (dues[last] - dues[first]) / 1e9 * rate + 1e-6
            assert last - first + 1 <= allowed + 1e-6


def test_a_clock_that_is_set_back_holds_no_eviction_up():
    """The limit goes on from the tokens that are there; it does not wait until the old time comes again."""
    limiter, later = Limiter(), after(NOW, hours(1))
    assert limiter.take(later, 0.1, 1, after(later, minutes(1))) == later
    assert limiter.take(NOW, 0.1, 1, after(NOW, minutes(1))) == after(NOW, seconds(10))
    memory = Memory(recent=[(later, "shop"), (NOW, "shop")])
    assert memory.evicted_lately(after(NOW, seconds(30))) == {"shop": 1}


@given(
    configured=st.integers(0, 30),
    running=st.integers(0, 30),
    share=st.floats(0, 1),
)
def test_a_group_never_loses_more_than_its_tolerance(configured, running, share):
    """However many are to be evicted, and with no tolerance at most one."""
    group = Group(configured=configured, tolerance=int(configured * share), running=running)
    evicted = 0
    while group.has_budget() and evicted <= 40:
        group.evicted += 1
        evicted += 1
    most = max(running - configured + group.tolerance, 0)
    single = int(group.tolerance == 0 and running == configured)
    assert evicted == max(most, single)


@pytest.mark.parametrize(
    "bad",
    [
        {"vpa_object_namespace": "a", "ignored_vpa_object_namespaces": ("b",)},
        {"updater_interval": 0},
        {"admission_controller_status_lease_timeout": 0},
        {"concurrent_cpu_startup_boost_syncs": 0},
        {"compatibility": "1.7"},
    ],
)
def test_settings_that_make_no_sense_are_refused(bad):
    """With the flag's name in the error."""
    with pytest.raises(ValueError, match=next(iter(bad)).replace("_", "-").split("-")[0]):
        Settings(**bad)


def test_a_loop_over_many_pods_pauses_and_decides_the_same():
    """Other tasks get their turn; what is decided, and what a record holds, knows nothing of it."""
    pods, vpas, views = [], [], []
    for number in range(300):
        owner = f"w{number}-1"
        views.append(WorkloadView("Deployment", "default", f"w{number}", selector="app=web", replicas=2))
        views.append(
            WorkloadView("ReplicaSet", "default", owner, owner=("Deployment", f"w{number}"), replicas=2)
        )
        vpas.append(vpa(name=f"w{number}", target=("Deployment", f"w{number}")))
        pods += [pod(f"w{number}-{index}", owner=("ReplicaSet", owner)) for index in range(2)]
    found = state(pods, vpas, views=views)
    core = UpdaterCore()
    core.apply(encode_delta(found.dump()), full=True)
    dialogue, pauses, commands = Dialogue(deciding(found, NOW)), 0, []
    while dialogue.command is not None or dialogue.is_paused:
        if dialogue.is_paused:
            pauses += 1
            dialogue.go_on()
            continue
        assert core.decide(NOW) == encode_commands(dialogue.command)
        commands.append(dialogue.command)
        dialogue.answer(Outcome(NOW))
        core.absorb(encode_outcomes(Outcome(NOW)), NOW)
    assert len(commands) == 300
    assert pauses == 1
    assert dialogue.result is not None
