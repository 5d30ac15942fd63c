"""ElasticWorkloads that no controller follows, or whose schedule cannot be read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.elastic.verdicts import Scene, other_hpa, other_vpa
from kubetide.objects.kinds import ELASTIC_WORKLOADS

_CHECK: Final = "elastic"


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the ElasticWorkloads that are invalid, conflicting or unanswered, and bad schedules.

    The rules are those of the loop ``elastic``, whether it runs or not.
    """
    scene = Scene()
    for other in (*map(other_hpa, snapshot.hpas), *map(other_vpa, snapshot.vpas)):
        scene.put_other(other.key, other)
    for found in snapshot.elastic:
        scene.put((found.metadata.namespace, found.metadata.name), found)
    for key, found in sorted(scene.workloads.items()):
        title, verdict, schedule = (
            title_of(found, ELASTIC_WORKLOADS),
            scene.verdict(key),
            found.status.schedule,
        )
        if verdict.reason:
            yield Finding(
                check=_CHECK,
                severity="critical",
                object=title,
                seen=f"{verdict.reason}: {verdict.message}",
                why="none of its sections acts",
                fix="correct the field that is named, or let one object alone scale the target",
            )
        elif not found.status.conditions:
            yield Finding(
                check=_CHECK,
                severity="critical",
                object=title,
                seen="it has no condition: no controller has answered it",
                why="its target keeps its size, whatever the load is",
                fix="run kubetide with --controllers=elastic and the loops of its sections, and --act",
            )
        elif found.spec.schedule is not None and schedule is not None and schedule.problems:
            yield Finding(
                check=_CHECK,
                severity="warning",
                object=title,
                seen="; ".join(schedule.problems),
                why="the rules that cannot be read change nothing",
                fix="correct the rules in spec.schedule",
            )
