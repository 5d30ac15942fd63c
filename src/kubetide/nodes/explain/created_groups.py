"""Lines about groups that the loop created or could create."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.units.lists import listed
from kubetide.units.time import format_rfc3339

_MOST_NAMES = 5


class _Verdict(Protocol):
    @property
    def group(self) -> str: ...
    @property
    def takes(self) -> bool: ...
    @property
    def why(self) -> str: ...


def takers_sentence(takers: Sequence[str], created: Sequence[str], tick: Tick) -> str:
    """Return which groups would take a pod, among existing groups and those that could be created."""
    chosen = [one.group.id for one in tick.chosen if one.group.id in created]
    if takers and not chosen:
        word = "Group" if len(takers) == 1 else "Groups"
        return f"{word} {', '.join(takers)} would take it: {_result(tick, takers)}."
    # A group that is chosen comes first.
    names = [*chosen, *(one for one in created if one not in chosen)]
    parts = [f"group {', '.join(takers)}"] if takers else []
    parts.append(f"a group that would be created, {listed(names, _MOST_NAMES)}")
    said = " and ".join(parts)
    return f"{said[0].upper()}{said[1:]}, would take it: {_result(tick, [*takers, *created])}."


def _result(tick: Tick, takers: Sequence[str]) -> str:
    """Return what the tick does about it: decided again for the answer, nothing was ordered, so its result says nothing yet."""
    if tick.asking is not None:
        return f"the expander grpc is asked which of {listed([one.group.id for one in tick.asking], _MOST_NAMES)}"
    if len(tick.drawn_among) > 1:
        return f"the loop draws one of {listed(tick.drawn_among, _MOST_NAMES)}"
    if tick.chosen and not tick.error:
        chosen = [one.group.id for one in tick.chosen]
        others = "" if set(chosen) & set(takers) else " first, for other pods"
        return f"the loop chooses {listed(chosen, _MOST_NAMES)}{others}"
    return tick.error or tick.result


def would_be_lines(verdicts: Sequence[_Verdict]) -> list[str]:
    """Return the verdicts on a pod of groups that could be created; equal ones are merged."""
    by_word: dict[str, list[str]] = {}
    for one in verdicts:
        by_word.setdefault("would take it" if one.takes else f"no, {one.why}", []).append(one.group)
    return [f"group to be created, {listed(names, _MOST_NAMES)}: {said}" for said, names in by_word.items()]


def created_lines(state: State, group_id: str) -> tuple[str, ...]:
    """Return when and why the loop created the group, and since when it is empty; none for a person's group."""
    if not state.groups[group_id].autoprovisioned:
        return ()
    made = state.memory.made_groups.get(group_id)
    if made is None:
        lines = ["created: by this program; an earlier process knew why"]
    else:
        pods = f"{made.pods} {'pod' if made.pods == 1 else 'pods'}"
        named = f", such as {made.pod}" if made.pod else ""
        labels = ", ".join(f"{key}={value}" for key, value in sorted(made.labels.items()))
        lines = [
            f"created: by this loop at {format_rfc3339(made.at)} for {pods}{named}; expander {made.chosen_by}; "
            f"{made.candidates} groups could have been created" + (f"; labels {labels}" if labels else "")
        ]
    since = state.memory.empty_since.get(group_id)
    if since is not None:
        lines.append(
            f"empty: since {format_rfc3339(since)}; it is deleted once a node would be unneeded for long enough"
        )
    return tuple(lines)
