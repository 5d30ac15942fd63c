"""Repeated verdicts equal new ones, over ticks in which little or nothing changes."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.core import encode_commands, encode_result
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.facts.views import StatusView
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.objects.hpa import HpaStatus
from kubetide.units.time import Instant, minutes, seconds

APPS = ("api", "web")
WINDOW = {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 45}}}
FEW = {"behavior": {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}
SLOWLY_DOWN = {"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}}}
AT_LEAST_4, AT_MOST_4 = {"minimum": 4}, {"maximum": 4}
SPECS = ({}, WINDOW, FEW, SLOWLY_DOWN, AT_LEAST_4, AT_MOST_4, {**SLOWLY_DOWN, **AT_LEAST_4})
OTHER = (
    "nothing",
    "nothing",
    "nothing",
    "sample",
    "young pod",
    "not ready",
    "gone",
    "status",
    "hold",
    "no answer",
)


@st.composite
def days(draw):
    """HPAs, and what happens between two ticks of them: most often nothing."""
    specs = [draw(st.sampled_from(SPECS)) for _ in APPS]
    resource = draw(st.sampled_from(["cpu", "memory"]))
    ticks = draw(
        st.lists(
            st.tuples(
                st.sampled_from(OTHER),
                st.sampled_from(APPS),
                st.sampled_from([100, 101, 90, 60, 200, 30]),
                st.sampled_from([15, 15, 15, 40, 200]),
            ),
            min_size=6,
            max_size=16,
        )
    )
    return specs, resource, ticks


def outcomes_of(commands, now):
    return [ScaleOutcome(one.namespace, one.name, now) for one in commands.writes]


def said_of(verdict):
    """All that a verdict says, its explanation too."""
    fields = {name: getattr(verdict, name) for name in verdict.__struct_fields__ if name != "grounds"}
    return fields, verdict.grounds and verdict.grounds()


@settings(max_examples=150, deadline=None)
@given(days())
def test_nothing_differs_from_deciding_anew(day):
    """Commands, results, memory and explanations are equal, whether last verdicts may come out again or not."""
    specs, resource, ticks = day
    metrics = [worlds.utilization(50, resource)]
    views = [worlds.hpa(app, metrics=metrics, **spec) for app, spec in zip(APPS, specs, strict=True)]
    containers = (worlds.ContainerView("app", {"cpu": 200, "memory": 200_000}),)
    pods = {
        f"{app}-{at}": worlds.pod(f"{app}-{at}", app, containers=containers)
        for app in APPS
        for at in range(4)
    }
    usage = dict.fromkeys(pods, 100)
    settled = Settings(downscale_stabilization=minutes(1), cpu_initialization_period=seconds(60))
    states = [State(settled) for _ in range(2)]
    first = Delta(
        hpas=views, pods=list(pods.values()), scales=[worlds.scale(app, replicas=4) for app in APPS]
    )
    now, again, order = worlds.NOW, 0, []
    for number, (what, app, milli, gap) in enumerate([("nothing", "web", 0, 15), *ticks]):
        now = Instant(now + seconds(gap))
        delta = {}
        name = f"{app}-{number % 4}"
        if what == "sample":
            usage = {one: milli if one.startswith(app) else used for one, used in usage.items()}
        elif what == "young pod":
            young = {"started": Instant(now - seconds(5)), "ready_since": Instant(now - seconds(2))}
            pods[name] = worlds.pod(name, app, containers=containers, **young)
            delta["pods"] = [pods[name]]
        elif what == "not ready":
            pods[name] = worlds.pod(name, app, containers=containers, ready="False", ready_since=now)
            delta["pods"] = [pods[name]]
        elif what == "gone" and name in pods:
            del pods[name]
            delta["gone_pods"] = [("default", name)]
        elif what == "status":
            delta["statuses"] = [StatusView("default", app, HpaStatus(current_replicas=1))]
        elif what == "hold":
            delta["holds"] = ("the cache is old",)
        seen = {("default", one): used for one, used in usage.items() if one in pods}
        answer = worlds.answer(seen, [(resource, "")])
        if what == "no answer":
            answer = worlds.Answer(error="down")
        elif list(seen) == order:
            answer = msgspec.structs.replace(answer, pods=None)  # as a source says it whose pods are the same
        else:
            order = list(seen)
        delta_of_tick = Delta(**delta, answers=[answer])
        if not number:
            delta_of_tick = msgspec.structs.replace(first, answers=[answer])
        found = []
        for state, anew in zip(states, (False, True), strict=True):
            if anew:
                state.unchanged.clear()
                state.steady.clear()
                state.samples._last = None
            state.apply(delta_of_tick)
            before = {key: one.verdict for key, one in state.unchanged.items()}
            commands = decide(state, now)
            again += sum(one is before.get(one.key) for one in commands.verdicts)
            result = absorb(state, commands, outcomes_of(commands, now))
            found.append(
                (
                    encode_commands(commands),
                    encode_result(result),
                    msgspec.json.encode(state.memories()),
                    [said_of(one) for one in commands.verdicts],
                    [(one.status, one.desired, one.action) for one in result.settlements],
                )
            )
            rescaled = [(one.name, one.replicas) for one in commands.writes]
        assert found[0] == found[1]
        if rescaled:
            moved = Delta(
                scales=[worlds.scale(one, replicas=desired) for one, desired in rescaled],
                answers=[answer],
                holds=delta_of_tick.holds,
            )
            for state in states:
                state.apply(moved)
    event(f"{min(again, 3)} or more again")


@pytest.mark.parametrize(
    ("milli", "minimum", "window"),
    [(100, 1, 300), (30, 3, 0), (30, 1, 300)],
    ids=["at its target", "at its minimum", "held by what was recommended"],
)
def test_a_quiet_hpa_is_settled_once(milli, minimum, window):
    """From the third tick of the same samples on, the very same settlement comes out, and is remembered as a new one."""
    pods = [worlds.pod(f"web-{at}") for at in range(3)]
    usage = {("default", pod.name): milli for pod in pods}
    state = worlds.state_of(
        hpas=[worlds.hpa(minimum=minimum)],
        pods=pods,
        scales=[worlds.scale(replicas=3)],
        usage=usage,
        settings=Settings(downscale_stabilization=seconds(window)),
    )
    seen = []
    for number in range(6):
        now = Instant(worlds.NOW + number * seconds(15))
        state.apply(Delta(answers=[worlds.answer(usage)]))
        [settlement] = absorb(state, decide(state, now), []).settlements
        seen.append(settlement)
        assert max(one.at for one in state.recommendations.of(("default", "web"))) == now
    assert len({id(one) for one in seen[3:]}) == 1
    assert seen[-1].is_quiet
