"""The answer of ``kubetide explain scaledobject``, and coming windows for the board."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.elastic.keda.decide import problems_of
from kubetide.elastic.keda.sources import Source
from kubetide.elastic.keda.state import Memory, State
from kubetide.elastic.keda.windows import coming_demands, opening_of
from kubetide.explain.algorithm import StepCore
from kubetide.plan.board import ANNOUNCED, Intent, Workload
from kubetide.units.time import Instant, after, format_rfc3339

SOURCE: Final = "scaledobjects"
"""Who announces, on the board."""


def intents(state: State, now: Instant) -> list[Intent]:
    """Return the next windows of each followed object, with the replicas from then on; none where scaling out is paused.

    These are the next one, and those that open within ``ANNOUNCED`` of it and ask for more.
    """
    found = []
    for key in sorted(state.sources):
        source = state.sources[key]
        if not state.follows(key) or source.holds_out:
            continue
        workload = Workload(source.namespace, source.target.kind, source.target.name)
        for trigger, due, replicas in coming_demands(source, now, ANNOUNCED):
            why = f"ScaledObject {source.name}, triggers[{trigger.place}]"
            found.append(Intent(workload, replicas, due, SOURCE, why=why))
    return found


def names(core: StepCore[State]) -> list[str]:
    """Return the names of all ScaledObjects."""
    return ["/".join(key) for key in sorted(core.state.sources)]


def lines(core: StepCore[State], subject: str, now: Instant, view: str) -> list[str]:
    """Return what is followed, whether there is work, and the next action. Raises KeyError for an unknown object."""
    del view
    namespace, _, name = subject.partition("/")
    state, key = core.state, (namespace, name)
    source, memory = state.sources[key], state.memory[key]
    target = f"{source.target.kind} {source.target.name}"
    found = [f"it scales {target} from {source.lowest} to {source.most} replicas"]
    found += [f"warning: {text}" for text in problems_of(state, key, state.answers.get(key)) or memory.warned]
    if source.paused:
        return [
            *found,
            "it is paused" + ("" if source.paused_at is None else f" at {source.paused_at} replicas"),
        ]
    if not source.refused:
        found += [*_metrics(source, now), *_exceptions(source, memory)]
    found += _work(source, memory, now)
    return [*found, f"how many replicas: kubetide explain hpa {source.hpa} -n {namespace}"]


def _metrics(source: Source, now: Instant) -> Iterator[str]:
    """Yield what the HPA goes by beside servers."""
    for one in source.resources:
        of = f" of container {one.container}" if one.container else ""
        amount = f"{one.average} a pod" if one.utilization is None else f"{one.utilization} % of its request"
        yield f"the HPA goes by {one.resource}{of}: {amount}"
    for trigger in source.triggers:
        if trigger.window is None:
            continue
        is_open, _, until = opening_of(source, trigger, now)
        size = f"{trigger.window.name}: {trigger.window.size} replicas"
        if until is not None:
            yield f"{size} {'until' if is_open else 'from'} {format_rfc3339(until)}"


def _exceptions(source: Source, memory: Memory) -> Iterator[str]:
    """Yield what annotations and the fallback change."""
    if source.forced:
        yield "an annotation forces its activation"
    for paused, direction in ((source.holds_in, "in"), (source.holds_out, "out")):
        if paused:
            yield f"scaling {direction} is paused"
    if source.fallback is not None:
        for metric in sorted(source.fallback.covers(memory.failures)):
            count = dict(memory.failures)[metric]
            yield f"{metric}: {count} failures in a row, so the HPA goes by the fallback of {source.fallback.text}"


def _work(source: Source, memory: Memory, now: Instant) -> Iterator[str]:
    """Yield when there was work, and when the target is stopped."""
    if memory.last_active is None:
        yield "there has been no work yet"
        return
    yield f"there was work at {format_rfc3339(memory.last_active)}"
    over = after(memory.last_active, source.cooldown)
    if source.lowest == 0 and over > now and not (source.forced or source.holds_in):
        yield f"its target is stopped at {format_rfc3339(over)} where none comes before"
