"""Time tables and their targets for the tests of this folder."""

from __future__ import annotations

import msgspec

from kubetide.schedules.decide import absorb, decide, next_due, targets_due
from kubetide.schedules.decision import Outcome
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta, View
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339

START = parse_rfc3339("2026-03-02T00:00:00Z")


def table(kind, name="shop", created=START, status=None, annotations=None, **spec):
    """Read an object of a kind, as the loop does."""
    meta = {"name": name, "namespace": "web", "uid": name, "creationTimestamp": format_rfc3339(created)}
    meta["annotations"] = annotations or {}
    found = {"metadata": meta, "spec": spec, "status": status or {}}
    return MODES[kind].read(msgspec.convert(found, MODES[kind].kind.model))


def hpc(*crons, kind="Deployment", name="shop", **more):
    """A HorizontalPodCronscaler of a Deployment called shop."""
    target = {"apiVersion": "apps/v1", "kind": kind, "name": "shop", "namespace": "web"}
    return table("HorizontalPodCronscaler", name, scaleTarget=target, crons=list(crons), **more)


def cron(name, schedule, size, **more):
    return {"name": name, "schedule": schedule, "targetSize": size, **more}


def scaled_object(*windows, zone="UTC", **more):
    """A ScaledObject of a Deployment called shop with windows (start, end, replicas)."""
    triggers = [
        {
            "type": "cron",
            "metadata": {"timezone": zone, "start": start, "end": end, "desiredReplicas": str(size)},
        }
        for start, end, size in windows
    ]
    return table("ScaledObject", scaleTargetRef={"name": "shop"}, triggers=triggers, **more)


class Loop:
    """The core with one target, all of whose changes succeed."""

    def __init__(self, *tables, zone="UTC", replicas=1):
        self.tables, self.zone, self.replicas = tables, zone, replicas
        self.writes, self.notices, self.statuses = [], [], {}
        self.restart()

    def restart(self):
        """Start with the objects as they were created, without a memory of earlier changes."""
        self.state = State(Settings(schedules_zone=self.zone))
        self.state.apply(Delta(tables=self.tables))

    def look(self, at):
        views = tuple(View(target, self.replicas) for target in targets_due(self.state, at))
        self.state.apply(Delta(views=views))
        commands = decide(self.state, at)
        for run in commands.runs:
            if run.change.replicas is not None:
                self.replicas = run.change.replicas
                self.writes.append((format_rfc3339(at), run.change.replicas))
        result = absorb(self.state, commands, [Outcome() for _ in commands.runs], at)
        self.notices += result.notices
        self.statuses |= {key[2]: msgspec.json.decode(raw) for key, raw in result.statuses}

    def run(self, start, end):
        """Look whenever something is due, from start to end."""
        at = start
        while at <= end:
            self.look(at)
            due = next_due(self.state)
            if due is None:
                break
            at = Instant(max(due, at + 1))
