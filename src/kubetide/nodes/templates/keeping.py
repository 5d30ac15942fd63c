"""Learned machine facts as one small document that outlives the process.

It lies in a ConfigMap beside the status one. It is no larger than ``MOST_BYTES``: what was new longest ago is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.nodes.memory import GroupLearned, Learned, SeenAmounts
from kubetide.nodes.state import State
from kubetide.units.quantity import quantity_error
from kubetide.units.time import Instant, after

CONFIG_MAP: Final = "kubetide-node-templates"
DATA_KEY: Final = "learned"
MOST_BYTES: Final = 500_000
"""An object of the API holds about a MiB."""

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
    found = _decoder.decode(text)
    entries = [one for held in found.types.values() for one in held]
    entries += [one for group in found.groups.values() for one in group.amounts]
    for entry in entries:
        for name, value in (*entry.capacity.items(), *entry.allocatable.items()):
            if why := quantity_error(value):
                raise ValueError(f"{name} of instance type {entry.instance_type}: {why}")
    return found


def _newest(entries: Sequence[SeenAmounts]) -> Instant:
    return max((one.seen_at for one in entries), default=Instant(0))


def _last_new(group: GroupLearned) -> Instant:
    joined = group.last_join.at if group.last_join is not None else Instant(0)
    return max(_newest(group.amounts), joined)
