"""The pass in columns and the walk over pods are one algorithm."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.controller.gather import Gatherer  # noqa: F401  # the package must import as a whole
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.state import Delta
from kubetide.horizontal.views import YEAR_ONE, ContainerView
from kubetide.units.time import Instant, minutes, seconds

AGES = st.sampled_from([0, 10, 29, 30, 31, 120, 299, 300, 301, 4000])
REQUESTS = st.sampled_from([None, 0, 100, 250, 333])


@st.composite
def pods(draw):
    found = []
    for index in range(draw(st.integers(0, 12))):
        started = draw(st.none() | AGES)
        requests = {name: value for name in ("cpu", "memory") if (value := draw(REQUESTS)) is not None}
        side = draw(st.sampled_from([(), (ContainerView("side", {"cpu": 7, "memory": 9}),)]))
        found.append(
            worlds.pod(
                f"p{index}",
                app=draw(st.sampled_from(["a", "b", "c"])),
                namespace=draw(st.sampled_from(["x", "y"])),
                phase=draw(
                    st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded"])
                ),
                deleting=draw(st.sampled_from([False, False, False, True])),
                ready=draw(st.sampled_from(["True", "True", "False", "Unknown", ""])),
                ready_since=draw(st.just(YEAR_ONE) | AGES.map(lambda s: worlds.NOW - seconds(s))),
                started=None if started is None else Instant(worlds.NOW - seconds(started)),
                containers=(ContainerView("app", requests), *side),
                pod_level=draw(st.none() | st.just({"cpu": 500})),
            )
        )
    return found


METRICS = st.lists(
    st.sampled_from(
        [
            worlds.utilization(50),
            worlds.utilization(120),
            worlds.average("100m"),
            worlds.utilization(70, "memory"),
            {
                "type": "ContainerResource",
                "containerResource": {
                    "name": "cpu",
                    "container": "app",
                    "target": {"type": "Utilization", "averageUtilization": 60},
                },
            },
        ]
    ),
    min_size=1,
    max_size=3,
)
KEYS = [("cpu", ""), ("cpu", "app"), ("memory", "")]


@st.composite
def states(draw):
    everyone = draw(pods())
    known = {(pod.namespace, pod.name): pod for pod in everyone}
    usage = {
        key: draw(st.none() | st.integers(0, 600))
        for key in known
        if draw(st.sampled_from([True, True, True, False]))
    }
    usage[("x", "unknown")] = 5
    targets = [(namespace, app) for namespace in ("x", "y") for app in ("a", "b", "c")]
    return worlds.state_of(
        hpas=[worlds.hpa(app, namespace, metrics=draw(METRICS)) for namespace, app in targets],
        pods=list(known.values()),
        scales=[worlds.scale(app, namespace, replicas=draw(st.integers(0, 9))) for namespace, app in targets],
        usage=usage,
        keys=KEYS,
    )


def seen(state, columns_from):
    commands = decide(state, worlds.NOW, columns_from=columns_from)
    return commands.writes, [
        (v.key, v.desired, v.raw, v.notes, v.events, v.metrics, v.error, v.proposals)
        for v in commands.verdicts
    ]


@settings(max_examples=100, deadline=None)
@given(states())
def test_columns_give_what_the_walk_gives(state):
    """Whatever the pods, both ways come to the same verdicts, texts included."""
    assert seen(state, 0) == seen(state, 1_000_000)


@settings(max_examples=60, deadline=None)
@given(states(), st.integers(0, 3))
def test_a_dump_decides_the_same(state, ticks):
    """A state made of a full delta decides as the one that was dumped, also after some ticks."""
    for tick in range(ticks):
        now = Instant(worlds.NOW + minutes(tick))
        commands = decide(state, now)
        absorb(state, commands, [ScaleOutcome(w.namespace, w.name, now) for w in commands.writes])
    answers = [worlds.answer({("x", "p0"): 100, ("y", "p1"): 300}, KEYS)]
    copied = type(state).from_full(msgspec.structs.replace(state.dump(), answers=answers))
    state.apply(Delta(answers=answers))
    now = Instant(worlds.NOW + minutes(ticks))
    assert seen(copied, 0) == seen(state, 0)
    outcomes = [ScaleOutcome(w.namespace, w.name, now) for w in decide(state, now).writes]
    assert absorb(state, decide(state, now), outcomes).settlements[0].changes == (
        absorb(copied, decide(copied, now), outcomes).settlements[0].changes
    )
