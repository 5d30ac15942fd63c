"""The ConfigMap of the expander ``priority``."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, Severity
from kubetide.doctor.snapshot import Snapshot
from kubetide.nodes.expander import reads_priorities
from kubetide.nodes.expander.priority import LEAST, PrioritiesError, read_priorities
from kubetide.nodes.expander.yaml_text import repeated_keys
from kubetide.nodes.facts.priorities import PRIORITIES_KEY, PRIORITY_MAP
from kubetide.units.lists import listed

_FORM = f"give it the key `{PRIORITIES_KEY}`: YAML of numbers, each with a list of expressions, such as `10: [spot-.*]`"
_MOST = 5
"""Names in a sentence."""


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield what keeps the map from being followed, and what in it is about no group."""
    known = snapshot.priorities
    if known is None:
        return
    if not known.found:
        if reads_priorities(snapshot.settings.expander):
            yield _finding(snapshot, "warning", "it is not there, so every group counts the same", _FORM)
        return
    if known.priorities is None:
        yield _finding(
            snapshot, "warning", f"it has no key `{PRIORITIES_KEY}`, so nothing of it holds", _FORM
        )
        return
    try:
        priorities = read_priorities(known.priorities)
    except PrioritiesError as error:
        yield _finding(snapshot, "warning", f"nothing of it holds: {error}", _FORM)
        return
    if twice := repeated_keys(known.priorities):
        seen = f"{listed(twice, _MOST)} stands twice: only the last list of each holds"
        yield _finding(snapshot, "warning", seen, "write one list for each number")
    if idle_numbers := [str(value) for value in priorities if value < LEAST]:
        seen = f"{listed(idle_numbers, _MOST)} is below {LEAST}: groups that match nothing higher are not chosen by it"
        yield _finding(snapshot, "warning", seen, "number the groups from 0")
    groups = sorted(
        {one.id for one in snapshot.groups if one.exists} or {one.name for one in snapshot.group_statuses}
    )
    if not groups:
        return
    patterns = [one for some in priorities.values() for one in some]
    idle = [one.text for one in patterns if not any(one.find(group) for group in groups)]
    if idle:
        fix = f"compare them with the names of the groups: {listed(groups, _MOST)}"
        yield _finding(snapshot, "info", f"no group matches {listed(idle, _MOST)}", fix)
    left = [group for group in groups if not any(one.find(group) for one in patterns)]
    if left:
        fix = "add an expression for them, such as `.*` with the lowest number"
        seen = f"no expression matches {listed(left, _MOST)}: not chosen while another group matches"
        yield _finding(snapshot, "info", seen, fix)


def _finding(snapshot: Snapshot, severity: Severity, seen: str, fix: str) -> Finding:
    return Finding(
        check="priorities",
        severity=severity,
        object=f"ConfigMap {snapshot.settings.namespace}/{PRIORITY_MAP}",
        seen=seen,
        why="the expander `priority` chooses the group that grows by it",
        fix=fix,
    )
