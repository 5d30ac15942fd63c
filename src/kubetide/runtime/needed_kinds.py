"""Which loops cannot work while a kind may not be read or is not served, and which go on without it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubetide.loop import LoopEntry
from kubetide.objects.kinds import Kind

DEFINED_GROUPS: Final = frozenset({"autoscaling.k8s.io", "autoscaling.x-k8s.io", "kubetide.dev"})
"""Of the kinds that ``kubetide install crds`` defines."""
_INSTALL: Final = "`kubetide install crds --apply` installs their definitions"


def loops_that_need(kind: Kind[Any], entries: Iterable[LoopEntry[Any]]) -> list[str]:
    """Return the names of the loops that read the kind, and cannot do without it."""
    return [one.name for one in entries if kind not in one.optional_kinds and _reads(one, kind)]


def is_needed(kind: Kind[Any], entries: Iterable[LoopEntry[Any]]) -> bool:
    """Return whether a loop needs the kind, or none says that it goes on without it."""
    entries = tuple(entries)
    return bool(loops_that_need(kind, entries)) or not _users(kind, entries)


def consequence(
    kind: Kind[Any], entries: Iterable[LoopEntry[Any]], *, is_served: bool, has_been_read: bool
) -> str:
    """Return what a refusal to read the kind means for the loops, as the end of a sentence; empty where nothing is known."""
    entries = tuple(entries)
    needing, users = loops_that_need(kind, entries), _users(kind, entries)
    if has_been_read and (needing or users):
        return f"until then {_loops([*needing, *users], 'goes', 'go')} by what was last read of them"
    if needing:
        fix = "" if is_served or kind.group not in DEFINED_GROUPS else f"; {_INSTALL}"
        return f"{_loops(needing, 'cannot', 'cannot')} work without them{fix}"
    return f"{_loops(users, 'goes', 'go')} on without them" if users else ""


def _users(kind: Kind[Any], entries: Iterable[LoopEntry[Any]]) -> list[str]:
    return [one.name for one in entries if kind in one.optional_kinds]


def _reads(entry: LoopEntry[Any], kind: Kind[Any]) -> bool:
    grants = (grant for role in entry.roles for grant in role.grants if not grant.acting)
    return any(grant.allows("watch", kind.group, kind.plural) for grant in grants)


def _loops(names: list[str], one: str, several: str) -> str:
    if len(names) == 1:
        return f"the {names[0]} loop {one}"
    return f"the loops {', '.join(names[:-1])} and {names[-1]} {several}"
