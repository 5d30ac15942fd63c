"""Learned machine facts as one small document that outlives the process.

It lies in a ConfigMap beside the status one. It is no larger than ``MOST_BYTES``: what was new longest ago is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.nodes.facts.machine_amounts import amount_error
from kubetide.nodes.memory import GroupLearned, Learned, SeenAmounts
from kubetide.nodes.state import State
from kubetide.objects.base import Quantities
from kubetide.units.time import Instant, after

CONFIG_MAP: Final = "kubetide-node-templates"
DATA_KEY: Final = "learned"
MOST_BYTES: Final = 500_000
"""An object of the API holds about a MiB."""

_LATEST: Final = (1 << 63) - 1
"""The last instant that 64 bits of nanoseconds hold, in the year 2262."""

_encoder = msgspec.json.Encoder(order="deterministic")
_decoder = msgspec.json.Decoder(Learned)


def document_due(state: State, now: Instant) -> str | None:
    """Return the document if something new was learned and the last one is old enough; note that it was returned."""
    memory, settings = state.memory, state.settings
    if not memory.learned_changed or not settings.templates_by_instance_type:
        return None
    written = memory.learned_written
    if written is not None and now < after(written, settings.status_interval):
        return None
    memory.learned_changed, memory.learned_written = False, now
    return learned_document(memory.learned)


def learned_document(learned: Learned, *, most: int = MOST_BYTES) -> str:
    """Return the document of learned facts, at most ``most`` bytes."""
    types = sorted(learned.types.items(), key=lambda item: (-_newest(item[1]), item[0]))
    groups = sorted(learned.groups.items(), key=lambda item: (-_last_new(item[1]), item[0]))
    while True:
        text = _encoder.encode(Learned(types=dict(types), groups=dict(groups)))
        if len(text) <= most or not (types or groups):
            return text.decode()
        # Types hold for all groups, so groups go first.
        shrinking = groups or types
        del shrinking[len(shrinking) * 3 // 4 :]


def read_learned(text: str) -> Learned:
    """Return the facts of a document. Raises ValueError for one that this program cannot have written."""
    try:
        found = _decoder.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested without end") from error
    for held in found.types.values():
        for entry in held:
            _check_seen(entry)
    for name, group in found.groups.items():
        for entry in group.amounts:
            _check_seen(entry)
        _check_times(f"group {name}", *(time for one in group.starts for time in (one.at, one.took)))
        if (join := group.last_join) is not None:
            _check_times(f"node {join.node}", join.at, join.took)
            _check_amounts(f"node {join.node}", join.promised, join.real)
            if unknown := sorted({*join.errors} - {*join.promised}):
                raise ValueError(f"node {join.node}: {unknown[0]} was not promised")
        if group.joins < 0:
            raise ValueError(f"group {name}: {group.joins} nodes joined")
    return found


def _check_seen(entry: SeenAmounts) -> None:
    what = f"instance type {entry.instance_type}"
    _check_times(what, entry.seen_at)
    _check_amounts(what, entry.capacity, entry.allocatable)


def _check_times(what: str, *times: int) -> None:
    """Raise ValueError for a time or a duration that no clock says: the rest of the program could not write it."""
    if wrong := [time for time in times if not 0 <= time <= _LATEST]:
        raise ValueError(f"{what}: {wrong[0]} ns is no time")


def _check_amounts(what: str, *amounts: Quantities) -> None:
    for name, value in (pair for some in amounts for pair in some.items()):
        if why := amount_error(name, value):
            raise ValueError(f"{name} of {what}: {why}")


def _newest(entries: Sequence[SeenAmounts]) -> Instant:
    return max((one.seen_at for one in entries), default=Instant(0))


def _last_new(group: GroupLearned) -> Instant:
    joined = group.last_join.at if group.last_join is not None else Instant(0)
    return max(_newest(group.amounts), joined)
