"""Time tables that change nothing, that cannot be read, or whose changes others undo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding
from kubetide.doctor.snapshot import Snapshot
from kubetide.doctor.targets import is_missing, others_text
from kubetide.doctor.workloads import PLURALS
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS
from kubetide.schedules.kinds.base import is_hpa
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.tables import Table
from kubetide.schedules.warnings import autoscalers, rule_warnings, shared_target, size_conflicts

_CHECK: Final = "time-tables"
_KINDS: Final = {kind.lower(): kind for kind in PLURALS}


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the tables without a target, those that another object contradicts, and what of them cannot be read.

    The rules are those of the loop ``schedules``, whether it runs or not. Schedules of ElasticWorkloads are looked at by
    the check ``elastic``, but for their target.
    """
    state = snapshot.time_tables
    for _, table in sorted(state.tables.items()):
        yield from _lost(snapshot, table)
        if table.kind == ELASTIC_WORKLOADS.kind:
            continue
        plan = state.plan(table.key)
        texts = rule_warnings(table, plan, state.progress[table.key])
        if texts:
            ignored = bool(table.refused) or (MODES[table.kind].windows and bool(plan.warnings))
            yield Finding(
                check=_CHECK,
                severity="critical" if ignored else "warning",
                object=_title(table),
                seen="; ".join(texts),
                why="nothing of it is followed"
                if ignored
                else "the rules that are named do not hold as written",
                fix="correct what is named; `kubetide explain schedule` says of a run what then holds, and when",
            )
        if shared := shared_target(state, table):
            yield Finding(
                check=_CHECK,
                severity="warning",
                object=_title(table),
                seen=shared.seen,
                why="which size holds depends on which rule was due last",
                fix=shared.fix,
            )
    scalers = autoscalers(snapshot.hpas, snapshot.scaled_objects)
    for one in size_conflicts((table for _, table in sorted(state.tables.items())), scalers):
        yield Finding(
            check=_CHECK,
            severity="critical",
            object=_title(one.table),
            seen=one.seen,
            why="the size that it sets holds for seconds",
            fix=one.fix,
        )


def _lost(snapshot: Snapshot, table: Table) -> Iterator[Finding]:
    if table.kind == ELASTIC_WORKLOADS.kind and (table.limits is not None or not table.rules):
        return  # its horizontal section is looked at as an HPA is; without a schedule it is no table
    target = table.target
    if not target.kind or not target.name:
        return  # which its warnings say
    if is_hpa(target):
        kind, names = (
            HPAS.kind,
            sorted(one.metadata.name for one in snapshot.hpas if one.metadata.namespace == target.namespace),
        )
        if not snapshot.reads(HPAS.plural) or target.name in names:
            return
        there = f"there are {', '.join(names[:5])}" if names else f"there is no {kind} at all"
    else:
        kind = _KINDS.get(target.kind.lower(), target.kind)
        if not is_missing(snapshot, kind, target.namespace, target.name):
            return
        there = others_text(snapshot, kind, target.namespace)
    yield Finding(
        check=_CHECK,
        severity="critical",
        object=_title(table),
        seen=f"its target {kind} {target.name} does not exist in namespace {target.namespace}",
        why="it changes nothing",
        fix=f"correct the name of its target ({there}), or delete it",
    )


def _title(table: Table) -> str:
    return f"{table.kind} {table.namespace}/{table.name}"
