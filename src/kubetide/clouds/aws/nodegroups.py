"""Managed node groups of EKS: labels, taints and resources that the Auto Scaling group's tags do not say.

Source: cluster-autoscaler (Aug 2026), AWS provider, managed nodegroup cache. Upstream loses a taint without a
value; a node has it, so it counts here. Upstream also forgets a group when EKS fails to answer, and a pod that
does not tolerate its taints would then get nodes that it cannot use; here the last answer holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.tags import Tags, read_tags
from kubetide.clouds.common.remembered import Remembered
from kubetide.objects.base import Json
from kubetide.objects.node import Taint
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, minutes, seconds

CLUSTER_LABEL: Final = "cluster-name"
NODEGROUP_LABEL: Final = "nodegroup-name"

_NOT_THERE: Final = "ResourceNotFoundException"
_LIFE: Final = minutes(6)
_EARLY: Final = (seconds(0), seconds(60))
_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}
_LABELS: Final = (
    ("diskSize", "diskSize"),
    ("amiType", "amiType"),
    ("capacityType", "eks.amazonaws.com/capacityType"),
    ("version", "k8sVersion"),
    ("nodegroupName", "eks.amazonaws.com/nodegroup"),
)


class Managed(NamedTuple):
    """What EKS says of the nodes of a managed group."""

    labels: dict[str, str]
    taints: tuple[Taint, ...]
    resources: dict[str, str]
    warnings: tuple[str, ...] = ()


NOTHING: Final = Managed({}, (), {})


def read_nodegroup(raw: Json) -> Managed:
    """Return what one nodegroup of DescribeNodegroup says of its nodes; its own labels win."""
    labels = {label: str(raw[field]) for field, label in _LABELS if raw.get(field) not in {None, ""}}
    labels.update(raw.get("labels") or {})
    taints = tuple(
        Taint(key=taint["key"], value=taint.get("value") or "", effect=_EFFECTS[taint.get("effect") or ""])
        for taint in raw.get("taints") or ()
        if taint.get("key") and taint.get("effect") in _EFFECTS
    )
    tags: Tags = read_tags((raw.get("tags") or {}).items())
    return Managed(labels, taints, tags.resources, tags.warnings)


class Nodegroups:
    """Finds the managed node group behind an Auto Scaling group's labels; asks EKS every six minutes."""

    def __init__(self, api: AwsApi) -> None:
        self._api = api
        self._held = Remembered(_LIFE, _EARLY)
        self._last: dict[str, Managed] = {}

    async def of(self, labels: Mapping[str, str], now: Instant) -> Managed:
        """Return what EKS says of the group that these labels name; nothing for one that is not managed.

        A group that EKS does not know, or may not be asked for, gives a warning and nothing else.
        """
        cluster, name = labels.get(CLUSTER_LABEL), labels.get(NODEGROUP_LABEL)
        if not cluster or not name:
            return NOTHING

        key = f"{cluster}\0{name}"

        async def ask() -> Managed:
            try:
                raw = await self._api.nodegroup(cluster, name)
            except CloudError as error:
                if error.error_code == _NOT_THERE:
                    self._last.pop(key, None)
                last = self._last.get(key, NOTHING)
                what = (
                    "its labels and taints are those of before"
                    if key in self._last
                    else "its labels are not known"
                )
                warning = f"EKS node group {name} of cluster {cluster}: {error}; {what}"
                return last._replace(warnings=(*last.warnings, warning))
            self._last[key] = NOTHING if raw is None else read_nodegroup(raw)
            return self._last[key]

        found: Managed = await self._held.get(key, now, ask)
        return found

    def sweep(self) -> None:
        """Forget groups that nobody has asked for since the last sweep."""
        self._held.sweep()
        self._last = {key: last for key, last in self._last.items() if key in self._held}
