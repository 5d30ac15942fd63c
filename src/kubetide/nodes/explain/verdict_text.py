"""What a group says to the pods of a tick, in a few words."""

from __future__ import annotations

from kubetide.nodes.facts.amounts import refusal_text
from kubetide.nodes.scale_up.tick import Tick


def verdict_text(tick: Tick, group: str) -> str:
    """Return whether new nodes of the group would take the pods, and why not: the first reason."""
    if group in tick.skipped:
        return f"no, {', '.join(tick.skipped[group])}"
    for verdict in tick.verdicts:
        rejection = verdict.rejected.get(group)
        if rejection is not None:
            refusal = rejection.refusal
            return f"no, {', '.join(rejection.reasons) if refusal is None else refusal_text(refusal)}"
    taken = next((len(one.pods) for one in tick.options if one.group.id == group), 0)
    wanted = len(tick.wanted.pods)
    return (
        "takes them"
        if taken >= wanted
        else f"no, its limits leave new nodes for {taken} of the {wanted} pods"
    )
