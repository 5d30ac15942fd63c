"""Oddities of a group, reported once: malformed settings, a spread over zones or types, a stale view."""

from __future__ import annotations

from kubetide.explain.reasons import Reason
from kubetide.nodes.decision import EventRecord
from kubetide.nodes.reasons import reason
from kubetide.nodes.scale_up.reporting.events import on_status
from kubetide.nodes.state import State
from kubetide.nodes.templates.spread import spread_text
from kubetide.ports.cloud import NodeGroup

_STALE = "stale"


def notices(state: State) -> tuple[list[EventRecord], list[Reason]]:
    """Return one event and one reason for each group with a new oddity; note what was reported."""
    memory = state.memory
    events: list[EventRecord] = []
    reasons: list[Reason] = []
    said: dict[str, tuple[str, ...]] = {}
    for group_id, group in state.groups.items():
        texts = _by_key(group)
        if not texts:
            continue
        said[group_id] = tuple(texts)
        before = memory.noticed.get(group_id, ())
        if new := [text for key, text in texts.items() if key not in before]:
            why = "; ".join(new)
            events += on_status(state, "Warning", "NodeGroupNotice", f"Node group {group_id}: {why}")
            reasons.append(reason("GroupNotice", group_id, why=why))
    if said != memory.noticed:
        memory.noticed = said
    return events, reasons


def group_notices(group: NodeGroup) -> tuple[str, ...]:
    """Return the oddities of a group, one sentence each."""
    return tuple(_by_key(group).values())


def _by_key(group: NodeGroup) -> dict[str, str]:
    """Return the sentences by what they are about; why a view is old may read otherwise at each refresh."""
    found = {warning: warning for warning in group.warnings or ()}
    if spread := spread_text(group):
        found[spread] = spread
    if group.stale:
        found[_STALE] = f"it is seen as it was earlier, and no node of it is removed: {group.stale}"
    return found
