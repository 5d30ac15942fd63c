"""The pass in columns and the walk over pods are one algorithm."""

from __future__ import annotations

import msgspec
import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.horizontal import worlds

from kubetide.horizontal.batch.columns import ordinary
from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.facts.pods import PodTable
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.facts.views import YEAR_ONE, ContainerView
from kubetide.horizontal.memory import MemoryEntry, Recommendation, ScaleEvent, ScaleEvents
from kubetide.horizontal.metrics.types import Question
from kubetide.horizontal.rules.evaluate import evaluate
from kubetide.horizontal.rules.tally import pod_request
from kubetide.horizontal.state import Delta
from kubetide.units.time import Instant, minutes, seconds

AGES = st.sampled_from([4000, 0, 10, 29, 30, 31, 120, 299, 300, 301])
GROUPS = [(namespace, app) for namespace in ("x", "y") for app in ("a", "b")]
SIDE = ContainerView("side", {"cpu": 7, "memory": 9})


@st.composite
def pods(draw):
    """Pods of four targets; of most targets all pods are as they should be."""
    found = []
    for namespace, app in GROUPS:
        odd = draw(st.integers(0, 3)) == 0
        for index in range(draw(st.integers(1, 4))):
            requests = {"cpu": draw(st.sampled_from([250, 100, 333])), "memory": 512_000}
            if odd and draw(st.booleans()):
                found.append(draw(odd_pods(f"{app}{index}", app, namespace, requests)))
                continue
            containers = (ContainerView("app", requests), *draw(st.sampled_from([(), (SIDE,)])))
            found.append(worlds.pod(f"{app}{index}", app=app, namespace=namespace, containers=containers))
    return found


@st.composite
def odd_pods(draw, name, app, namespace, requests):
    started = draw(st.none() | AGES)
    lacking = draw(st.sampled_from([None, None, "cpu", "memory"]))
    return worlds.pod(
        name,
        app=draw(st.sampled_from([app, app, app, "b"])),
        namespace=namespace,
        phase=draw(st.sampled_from(["Running", "Running", "Running", "Pending", "Failed", "Succeeded"])),
        deleting=draw(st.sampled_from([False, False, False, True])),
        ready=draw(st.sampled_from(["True", "True", "False", "Unknown", ""])),
        ready_since=draw(st.just(YEAR_ONE) | AGES.map(lambda s: worlds.NOW - seconds(s))),
        started=None if started is None else Instant(worlds.NOW - seconds(started)),
        containers=(ContainerView("app", {k: v for k, v in requests.items() if k != lacking}),),
        pod_level=draw(st.none() | st.just({"cpu": 500})),
    )


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
            worlds.of_pods("5"),
            worlds.external({"value": "10"}),
            worlds.of_object({"averageValue": "3"}),
        ]
    ),
    min_size=1,
    max_size=3,
)
POLICIES = [
    {"type": "Pods", "value": 2, "periodSeconds": 60},
    {"type": "Percent", "value": 50, "periodSeconds": 15},
]


def rules(window, select, policies):
    return {"stabilizationWindowSeconds": window, "selectPolicy": select, "policies": policies}


RULES = st.builds(
    rules,
    st.sampled_from([0, 60, 300]),
    st.sampled_from(["Max", "Min", "Disabled"]),
    st.sampled_from([POLICIES, POLICIES[:1], POLICIES[1:]]),
)
BEHAVIORS = st.none() | st.fixed_dictionaries({"scaleUp": RULES, "scaleDown": RULES})


@st.composite
def memories(draw, namespace, app):
    def past(kind):
        made = st.builds(kind, AGES.map(lambda s: worlds.NOW - seconds(s)), st.integers(1, 9))
        return draw(st.lists(made, max_size=6))

    recommendations = past(Recommendation)
    return MemoryEntry(namespace, app, recommendations, ScaleEvents(past(ScaleEvent), past(ScaleEvent)))


@st.composite
def values(draw):
    """Replies of the custom and external metrics APIs; some are errors, some are not there."""
    questions = [Question("external", namespace, "queue") for namespace in ("x", "y")]
    about = {"api_version": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}
    questions += [Question("object", namespace, "hits", **about) for namespace in ("x", "y")]
    found = [Reply(question, milli=np.array([draw(st.integers(0, 40_000))])) for question in questions]
    names = ("a0", "a1", "b0", "b1", "unknown")
    for namespace, app in GROUPS:
        milli = np.array([draw(st.integers(0, 15_000)) for _ in names])
        found.append(Reply(Question("pods", namespace, "rps", pods=f"app={app}"), pods=names, milli=milli))
    at = draw(st.integers(0, len(found) - 1))
    odd = draw(st.sampled_from([[found[at]], [Reply(found[at].question, error="it is not there")], []]))
    return found[:at] + odd + found[at + 1 :]


KEYS = [("cpu", ""), ("cpu", "app"), ("memory", "")]


@st.composite
def states(draw):
    everyone = draw(pods())
    known = {(pod.namespace, pod.name): pod for pod in everyone}
    lost = draw(st.sets(st.sampled_from(sorted(known)), max_size=2)) if draw(st.booleans()) else set()
    usage = {key: draw(st.integers(0, 600)) for key in sorted(known) if key not in lost}
    for key in sorted(usage)[: draw(st.sampled_from([0, 0, 0, 1]))]:
        usage[key] = None
    usage[("x", "unknown")] = 5
    return worlds.state_of(
        hpas=[
            worlds.hpa(app, namespace, maximum=8, metrics=draw(METRICS), behavior=draw(BEHAVIORS))
            for namespace, app in GROUPS
        ],
        memory=[draw(memories(namespace, app)) for namespace, app in GROUPS],
        pods=list(known.values()),
        scales=[
            worlds.scale(app, namespace, replicas=draw(st.sampled_from([3, 1, 2, 5, 8, 0, 9])))
            for namespace, app in GROUPS
        ],
        usage=usage,
        keys=KEYS,
        values=draw(values()),
    )


def seen(state, columns_from):
    return is_reported(decide(state, worlds.NOW, columns_from=columns_from))


def is_reported(commands):
    """All that commands and verdicts say."""
    return commands.writes, [
        (
            (v.key, v.current, v.desired, v.rescale, v.why, v.raw, v.slot, v.stabilized, v.limit, v.first),
            (v.notes, v.events, v.late_events, v.metrics, v.computations, v.error, v.error_label, v.stage),
            v.grounds and list(zip(*v.grounds(), strict=True)),
        )
        for v in commands.verdicts
    ]


@settings(max_examples=60, deadline=None)
@given(states())
def test_columns_give_what_the_walk_gives(state):
    """Whatever the pods, both ways give the same verdicts, texts included."""
    assert seen(state, 0) == seen(state, 1_000_000)


def _walked(found, position):
    return any(
        cell.index[position] in cell.walked
        for cells in found.cells.values()
        for cell in cells
        if cell.index[position] >= 0
    )


def test_most_hpas_are_ordinary():
    """Healthy pods with requests and samples make an HPA ordinary: the pass in columns is not idle."""
    state = worlds.state_of(
        hpas=[worlds.hpa()],
        pods=[worlds.pod("a"), worlds.pod("b", phase="Pending")],
        scales=[worlds.scale(replicas=2)],
        usage={("default", "a"): 150},
        memory=[MemoryEntry("default", "web", [Recommendation(worlds.NOW - minutes(1), 2)])],
    )
    found = ordinary(state, worlds.NOW)
    assert found.mask.tolist() == [True]
    assert _walked(found, 0)
    assert seen(state, 0) == seen(state, 1_000_000)


@settings(max_examples=30, deadline=None)
@given(states())
def test_an_ordinary_hpa_is_judged_alike_by_itself(state):
    """An ordinary HPA has the same decision in the pass in columns and alone."""
    found = ordinary(state, worlds.NOW)
    for position, key in enumerate(state.hpas):
        if found.mask[position]:
            verdict = evaluate(state, key, worlds.NOW)
            event("ordinary, with pods filled in" if _walked(found, position) else "ordinary")
            assert (verdict.raw, verdict.stabilized) == (found.best[position], found.held[position])
            assert list(zip(*verdict.grounds(), strict=True)) == list(
                zip(*found.grounds(position), strict=True)
            )


@settings(max_examples=30, deadline=None)
@given(states(), st.integers(0, 3))
def test_a_dump_decides_the_same(state, ticks):
    """A state made of a full delta decides as the one that was dumped, also after some ticks."""
    for tick in range(ticks):
        now = Instant(worlds.NOW + minutes(tick))
        commands = decide(state, now)
        absorb(state, commands, [ScaleOutcome(w.namespace, w.name, now) for w in commands.writes])
    answers = [worlds.answer({("x", "a0"): 100, ("y", "b1"): 300}, KEYS)]
    measured = list(state.values.values())
    copied = type(state).from_full(msgspec.structs.replace(state.dump(), answers=answers, values=measured))
    state.apply(Delta(answers=answers, values=measured))
    now = Instant(worlds.NOW + minutes(ticks))
    assert seen(copied, 0) == seen(state, 0)
    outcomes = [ScaleOutcome(w.namespace, w.name, now) for w in decide(state, now).writes]
    assert absorb(state, decide(state, now), outcomes).settlements[0].patch == (
        absorb(copied, decide(copied, now), outcomes).settlements[0].patch
    )


REQUESTS = st.tuples(st.sampled_from(["a", "b", "c"]), st.sampled_from([None, 100, 200, 300, 400]))


@given(steps=st.lists(REQUESTS, max_size=30))
def test_a_shape_lasts_as_long_as_its_pods(steps):
    """Requests that no pod has any longer are forgotten, and the column has the requests that pods have now."""
    table, there = PodTable(), {}
    for name, cpu in steps:
        if cpu is None:
            table.remove(("default", name))
            there.pop(name, None)
        else:
            table.put(worlds.pod(name, cpu=cpu))
            there[name] = cpu
        assert len(table.shapes) == len(set(there.values()))
        column = table.shapes.column(("cpu", ""), pod_level=True, request=pod_request)
        found = {name: int(column[table.shape[row]]) for (_, name), row in table.rows.items()}
        assert found == there
        assert len(column) <= 4
