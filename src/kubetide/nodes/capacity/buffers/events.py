"""Events of CapacityBuffers; placeholder pods get none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kubetide.nodes.capacity.buffers.names import POD_TYPE, POD_TYPE_ANNOTATION
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.scale_up.reporting.pod_events import MAX_TOTAL_NODES, increases_text, reasons_text
from kubetide.nodes.scale_up.tick import Tick, Verdict
from kubetide.nodes.state import State
from kubetide.objects.capacity import CapacityBuffer
from kubetide.objects.kinds import CAPACITY_BUFFERS
from kubetide.objects.meta import controller_of
from kubetide.objects.pod import Pod


def buffers_triggered(state: State, tick: Tick) -> list[EventRecord]:
    """Return one event for each buffer that the new nodes serve."""
    found: dict[str, int] = {}
    for option in tick.chosen:
        for uid, count in _by_buffer(option.pods).items():
            found[uid] = found.get(uid, 0) + count
    groups = [one.group.id for one in tick.increases]
    return [
        _event(
            buffer,
            "TriggeredScaleUp",
            f"capacity buffer {count} fake pods triggered scale-up: {increases_text(tick, groups)}",
        )
        for buffer, count in _buffers(state, found)
    ]


def buffers_left(state: State, tick: Tick, left: Sequence[Verdict]) -> list[EventRecord]:
    """Return one event for each buffer with pods that no group helps; as upstream, reasons repeat per pod.

    At the maximum of all nodes no group is asked: that is the reason of each pod that has no place.
    """
    if tick.result == "ScaleUpLimitedByMaxNodesTotal":
        refused: list[tuple[Sequence[Pod], Verdict | None]] = [(tick.demand.pods, None)]
    else:
        refused = [(one.pods.pods, one) for one in left]
    counts: dict[str, int] = {}
    texts: dict[str, list[str]] = {}
    for pods, verdict in refused:
        by_buffer = _by_buffer(pods)
        if not by_buffer:
            continue
        text = MAX_TOTAL_NODES if verdict is None else reasons_text(tick, verdict, state.groups)
        for uid, count in by_buffer.items():
            counts[uid] = counts.get(uid, 0) + count
            texts.setdefault(uid, []).extend([text] * count)
    return [
        _event(
            buffer,
            "NotTriggerScaleUp",
            f"capacity buffer {count} fake pods didn't trigger scale-up: {','.join(texts[buffer.metadata.uid])}",
        )
        for buffer, count in _buffers(state, counts)
    ]


def _by_buffer(pods: Iterable[Pod]) -> dict[str, int]:
    found: dict[str, int] = {}
    for pod in pods:
        owner = controller_of(pod.metadata)
        if owner is not None and (pod.metadata.annotations or {}).get(POD_TYPE_ANNOTATION) == POD_TYPE:
            found[owner.uid] = found.get(owner.uid, 0) + 1
    return found


def _buffers(state: State, counts: dict[str, int]) -> list[tuple[CapacityBuffer, int]]:
    return [(one, counts[one.metadata.uid]) for one in state.capacity.buffers if one.metadata.uid in counts]


def _event(buffer: CapacityBuffer, reason: str, message: str) -> EventRecord:
    meta = buffer.metadata
    return EventRecord(CAPACITY_BUFFERS.kind, meta.name, "Normal", reason, message, meta.namespace, meta.uid)
