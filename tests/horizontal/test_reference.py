"""The pass in columns, and deciding one by one, against the plain reference, over sequences of ticks."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from tests.horizontal import reference, worlds
from tests.horizontal.reference import Answers, Memory, Sampled
from tests.horizontal.test_columns import BEHAVIORS, GROUPS, KEYS, METRICS, odd_pods, pods

from kubetide.horizontal.decide import absorb, decide
from kubetide.horizontal.decision import ScaleOutcome
from kubetide.horizontal.facts.samples import Answer, answer_of
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.metrics.types import Question
from kubetide.horizontal.state import Delta, State
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.time import Instant, seconds

HELD = {  # label of the reference: reason of the condition
    "able": "AbleToScale",
    "active": "ScalingActive",
    "limited": "ScalingLimited",
}
ABOUT = {"api_version": "networking.k8s.io/v1", "kind": "Ingress", "name": "main"}


@st.composite
def measured(draw, everyone):
    """The metrics APIs' answers in one tick: for most pods everything, at times errors."""
    samples = {}
    odd = draw(st.integers(0, 2)) == 0
    around = draw(st.sampled_from([20, 130, 250, 900]))
    for pod in everyone:
        if odd and draw(st.integers(0, 4)) == 0:
            continue
        used = {("cpu", ""): 0, ("cpu", "app"): draw(st.integers(around // 2, 2 * around))}
        used["cpu", ""] = used["cpu", "app"] + 7 * (len(pod.containers) - 1)
        used["memory", ""] = 1000 * draw(st.integers(100, 900))
        at = worlds.NOW + draw(st.sampled_from([0, -5, -40, -4000])) * seconds(1)
        sample = Sampled(used, at, draw(st.sampled_from([15, 30])) * seconds(1))
        if odd and draw(st.integers(0, 5)) == 0:
            # A container without CPU: the pod has no sample of it, nor of the container.
            sample = sample._replace(used={("memory", ""): used["memory", ""]})
        samples[pod.namespace, pod.name] = sample
    numbers = st.integers(0, 40_000)
    answers = st.one_of(st.lists(numbers, min_size=1, max_size=3), st.just("it is not there"))
    values = st.dictionaries(
        st.sampled_from(["a0", "a1", "b0", "b1", "unknown"]), st.integers(0, 15_000), min_size=1
    )
    return Answers(
        samples=samples,
        error=draw(st.sampled_from(["", "", "", "", "away"])),
        external={(space, "queue"): draw(answers) for space in ("x", "y")},
        objects={
            (space, "hits"): draw(answers.map(lambda a: a[:1] if isinstance(a, list) else a))
            for space in "xy"
        },
        pods={
            (space, f"app={app}", "rps"): draw(values | st.just("it is not there")) for space, app in GROUPS
        },
    )


def answer_from(reported):
    """The samples as the port gives them, containers apart."""
    if reported.error:
        return Answer(error=reported.error)
    keys, containers, cpu, memory, there, counts = list(reported.samples), [], [], [], [], []
    for key in keys:
        used = reported.samples[key].used
        whole, app = used.get(("cpu", "")), used.get(("cpu", "app"))
        parts = [("app", app or 0, whole is not None)]
        if whole is not None and whole != app:
            parts.append(("side", whole - app, True))
        counts.append(len(parts))
        for number, (name, milli, present) in enumerate(parts):
            containers.append(name)
            cpu.append(milli)
            there.append(present)
            memory.append(used["memory", ""] if number == 0 else 0)
    samples = PodSamples(
        namespaces=tuple(space for space, _ in keys),
        names=tuple(name for _, name in keys),
        timestamp_ns=np.array([reported.samples[key].at for key in keys], np.int64),
        window_ns=np.array([reported.samples[key].window for key in keys], np.int64),
        first=np.cumsum([0, *counts]),
        containers=tuple(containers),
        usage={
            "cpu": ResourceUsage(np.array(cpu, np.int64), np.array(there, np.bool_)),
            "memory": ResourceUsage(np.array(memory, np.int64), np.ones(len(memory), np.bool_)),
        },
    )
    return answer_of(samples, KEYS, hpa=None, same_pods=False)


def replies_from(reported):
    def reply(question, answer):
        if isinstance(answer, str):
            return Reply(question, error=answer)
        return Reply(question, milli=np.array(answer, np.int64))

    found = [reply(Question("external", *key), answer) for key, answer in reported.external.items()]
    found += [reply(Question("object", *key, **ABOUT), answer) for key, answer in reported.objects.items()]
    for (space, selector, metric), answer in reported.pods.items():
        question = Question("pods", space, metric, pods=selector)
        if isinstance(answer, str):
            found.append(Reply(question, error=answer))
        else:
            milli = np.array(list(answer.values()), np.int64)
            found.append(Reply(question, pods=tuple(answer), milli=milli))
    return found


@st.composite
def stories(draw):
    """HPAs of four targets, and some ticks: which pods changed, and what was measured."""
    hpas = [
        worlds.hpa(
            app,
            space,
            minimum=draw(st.sampled_from([1, 2])),
            maximum=draw(st.sampled_from([40, 12, 4])),
            metrics=draw(METRICS),
            behavior=draw(BEHAVIORS),
        )
        for space, app in GROUPS
    ]
    there = {(pod.namespace, pod.name): pod for pod in draw(pods())}
    start = {key: draw(st.sampled_from([3, 2, 6, 10, 1, 0, 14])) for key in GROUPS}
    ticks = []
    for number in range(draw(st.integers(2, 7))):
        changed, deleted = ([], []) if number else (list(there.values()), [])
        if number and draw(st.integers(0, 2)) == 0:
            key = draw(st.sampled_from(sorted(there)))
            if draw(st.booleans()):
                requests = {"cpu": 250, "memory": 512_000}
                there[key] = draw(odd_pods(key[1], there[key].labels["app"], key[0], requests))
                changed = [there[key]]
            else:
                del there[key]
                deleted = [key]
        same = bool(ticks) and draw(st.integers(0, 2)) == 0
        reported = ticks[-1][2] if same else draw(measured(list(there.values())))
        reported = reported._replace(
            samples={key: one for key, one in reported.samples.items() if key in there}
        )
        ticks.append((changed, deleted, reported))
        if not there:
            break
    gaps = [draw(st.sampled_from([15, 15, 31, 61, 250])) for _ in ticks]
    return hpas, start, gaps, ticks


def shown_of(metric):
    """Utilization and average of an entry of the status, None for one that failed."""
    part = metric.resource or metric.container_resource or metric.pods or metric.object or metric.external
    if part is None:
        return None
    return part.current.average_utilization, part.current.average_value or part.current.value


def in_words(metric, shown, status):
    """The reference's value of a metric, printed as the status prints it."""
    if shown is None:
        return None
    utilization, average = shown
    return utilization, status if average is None else average


def milli_of(text):
    """Thousandths of a quantity as statuses print them."""
    for suffix, factor in (("Ki", 1_024_000), ("Mi", 1_048_576_000), ("m", 1), ("k", 10**6)):
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    return int(text) * 1000


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(stories(), st.sampled_from([0, 0, 0, 1_000_000]))
def test_every_tick_is_as_the_plain_reference_says(story, columns_from):
    """Numbers, conditions, events and shown values, of all HPAs, in every tick, with memory."""
    hpas, replicas, gaps, ticks = story
    state = State()
    memories = {key: Memory() for key in GROUPS}
    there = {}
    for number, (changed, deleted, reported) in enumerate(ticks):
        now = Instant(worlds.NOW + sum(gaps[:number]) * seconds(1))
        there |= {(pod.namespace, pod.name): pod for pod in changed}
        for key in deleted:
            del there[key]
        scales = [worlds.scale(app, space, replicas=replicas[space, app]) for space, app in GROUPS]
        state.apply(
            Delta(
                hpas=hpas if not number else (),
                pods=changed,
                gone_pods=deleted,
                scales=scales,
                answers=[answer_from(reported)],
                values=replies_from(reported),
            )
        )
        commands = decide(state, now, columns_from=columns_from)
        result = absorb(state, commands, [ScaleOutcome(w.namespace, w.name, now) for w in commands.writes])
        for view, scale, settled in zip(hpas, scales, result.settlements, strict=True):
            key = view.namespace, view.name
            mine = [there[pod] for pod in sorted(there) if is_mine(there[pod], key)]
            expected = reference.decide(view, mine, scale, reported, memories[key], now)
            event(expected.active)
            compare(view, expected, settled)
            replicas[key] = expected.desired
        event(f"{len(ticks)} ticks")


def is_mine(pod, key):
    return pod.namespace == key[0] and pod.labels["app"] == key[1]


def compare(view, expected, settled):
    verdict = settled.verdict
    if verdict.stage == "decided":
        assert verdict.desired == expected.desired
    assert verdict.rescale == (expected.desired != verdict.current)
    assert verdict.raw == expected.raw
    reasons = {condition.type: condition.reason for condition in settled.status.conditions}
    for name, kind in HELD.items():
        if getattr(expected, name):
            assert reasons[kind] == getattr(expected, name), (kind, view)
    failed = [note.reason for note in settled.events if note.reason.startswith("Failed")]
    assert failed == expected.failures
    if expected.shown:
        shown = [shown_of(metric) for metric in settled.status.current_metrics]
        assert [one is None for one in shown] == [one is None for one in expected.shown]
        for ours, theirs in zip(shown, expected.shown, strict=True):
            if theirs is not None:
                assert ours[0] == theirs[0]
                if theirs[1] is not None:
                    assert milli_of(ours[1]) == theirs[1]


def test_an_ambiguous_selector_is_reported_by_the_reference_too():
    """Two HPAs of one target's pods are left alone by both."""
    views = [worlds.hpa("web"), worlds.hpa("also")]
    everyone = [worlds.pod("a"), worlds.pod("b")]
    scales = [
        worlds.scale("web", replicas=2),
        msgspec.structs.replace(worlds.scale("web", replicas=2), name="also"),
    ]
    state = worlds.state_of(hpas=views, pods=everyone, scales=scales, usage={("default", "a"): 900})
    settled = absorb(state, decide(state, worlds.NOW, columns_from=0), []).settlements
    by_name = {one.verdict.key[1]: one for one in settled}
    reported = Answers({}, "", {}, {}, {})
    for view, scale in zip(views, scales, strict=True):
        expected = reference.decide(view, everyone, scale, reported, Memory(), worlds.NOW, ambiguous=True)
        compare(view, expected, by_name[view.name])
