"""HPAs that are stuck at their maximum."""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.doctor.finding import Finding, title_of
from kubetide.doctor.snapshot import Snapshot
from kubetide.objects.kinds import HPAS


def find(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield the HPAs that ask for more than ``maxReplicas``, and those that cannot move at all."""
    for hpa in snapshot.every_hpa:
        name, spec = title_of(hpa, HPAS), hpa.spec
        least = 1 if spec.min_replicas is None else spec.min_replicas
        if least == spec.max_replicas:
            yield Finding(
                check="hpa-bounds",
                severity="warning",
                object=name,
                seen=f"minReplicas and maxReplicas are both {spec.max_replicas}",
                why="it can never scale",
                fix="raise maxReplicas, or delete the HPA and set replicas",
            )
            continue
        limited = any(
            one.type == "ScalingLimited" and one.status == "True" and one.reason == "TooManyReplicas"
            for one in hpa.status.conditions or ()
        )
        if limited:
            yield Finding(
                check="hpa-bounds",
                severity="warning",
                object=name,
                seen=f"it would have more than its maxReplicas of {spec.max_replicas}",
                why="load beyond that is served by too few pods",
                fix="raise maxReplicas, or give each pod more",
            )
