"""What the records of the time tables' loop show: the tables, as objects of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from kubetide.experiments.capture.reading import Records
from kubetide.objects.base import Json
from kubetide.objects.kinds import CRON_HPAS, HPCS, SCALED_OBJECTS, TKESTACK_CRON_HPAS, Kind
from kubetide.schedules.settings import Settings
from kubetide.schedules.tables import Delta, Rule, Table, Target
from kubetide.units.time import to_seconds

LOOP = "schedules"


class Tables(msgspec.Struct):
    """The time tables of a run: those of the start, and the names of those that came or changed later."""

    settings: Settings
    at_start: list[Table] = msgspec.field(default_factory=list)
    later: list[str] = msgspec.field(default_factory=list)


def read_tables(records: Records) -> Tables:
    """Read the records of the time tables' loop. Raises: RecordError."""
    found = Tables(Settings())
    known: dict[tuple[str, str, str], tuple[Target, tuple[Rule, ...]]] = {}
    deltas = msgspec.json.Decoder(Delta)
    for number, record in enumerate(records(LOOP)):
        delta = deltas.decode(record.state)
        found.settings = delta.settings or found.settings
        for table in delta.tables:
            says = table.target, table.rules
            if number == 0:
                found.at_start.append(table)
            elif known.get(table.key) != says:
                found.later.append(f"{table.kind} {table.namespace}/{table.name}")
            known[table.key] = says
    return found


def table_manifest(table: Table) -> Json | None:
    """Return a time table as a manifest; None for one of a kind that cannot be written."""
    if table.kind not in _WRITTEN:
        return None
    kind, spec = _WRITTEN[table.kind]
    meta: Json = {"name": table.name, "namespace": table.namespace}
    if table.limits is not None and (table.limits.paused or table.limits.paused_at is not None):
        meta["annotations"] = {"autoscaling.keda.sh/paused": "true"}
        if table.limits.paused_at is not None:
            meta["annotations"] = {"autoscaling.keda.sh/paused-replicas": str(table.limits.paused_at)}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec(table)}


def _reference(target: Target) -> Json:
    return {"apiVersion": target.api_version, "kind": target.kind, "name": target.name}


def _tencent(table: Table) -> Json:
    crons = [
        _there(
            name=rule.name,
            schedule=rule.schedule,
            targetSize=rule.size,
            minSize=rule.minimum,
            maxSize=rule.maximum,
            excludeDates=list(rule.exclude) or None,
        )
        for rule in table.rules
    ]
    return {"scaleTarget": {**_reference(table.target), "namespace": table.target.namespace}, "crons": crons}


def _alibaba(table: Table) -> Json:
    jobs = [
        {"name": rule.name, "schedule": rule.schedule, "targetSize": rule.size or 0, "runOnce": rule.once}
        for rule in table.rules
    ]
    exclude = list(table.rules[0].exclude) if table.rules else []
    return _there(scaleTargetRef=_reference(table.target), jobs=jobs, excludeDates=exclude or None)


def _tkestack(table: Table) -> Json:
    crons = [{"schedule": rule.schedule, "targetReplicas": rule.size or 0} for rule in table.rules]
    return {"scaleTargetRef": _reference(table.target), "crons": crons}


def _keda(table: Table) -> Json:
    triggers = [
        {
            "type": "cron",
            "metadata": {
                "timezone": rule.zone,
                "start": rule.schedule,
                "end": rule.end,
                "desiredReplicas": str(rule.size or 0),
            },
        }
        for rule in table.rules
    ]
    limits = table.limits
    around = (
        {}
        if limits is None
        else _there(
            minReplicaCount=limits.minimum,
            maxReplicaCount=limits.maximum,
            idleReplicaCount=limits.idle,
            cooldownPeriod=int(to_seconds(limits.cooldown)),
        )
    )
    return {"scaleTargetRef": _reference(table.target), **around, "triggers": triggers}


def _there(**fields: object) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


_WRITTEN: Final[Mapping[str, tuple[Kind[Any], Callable[[Table], Json]]]] = {
    HPCS.kind: (HPCS, _tencent),
    CRON_HPAS.kind: (CRON_HPAS, _alibaba),
    TKESTACK_CRON_HPAS.kind: (TKESTACK_CRON_HPAS, _tkestack),
    SCALED_OBJECTS.kind: (SCALED_OBJECTS, _keda),
}
