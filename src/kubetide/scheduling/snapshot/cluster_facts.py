"""Cluster facts that filters may read besides nodes and pods: namespaces, volumes, version, feature gates."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.objects.minor_version import OLDEST
from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.snapshot.volumes import Volumes


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that change seldom; a change makes all verdicts invalid.

    Attributes:
        namespaces: Labels of each Namespace object, by name.
        volumes: Claims, volumes and storage classes; None when claims are not looked at.
        devices: Slices, claims and classes of devices; None when they are not looked at.
        minor: The minor version of Kubernetes whose rules hold, 36 or 37.
        taint_comparison: Gate TaintTolerationComparisonOperators (alpha, off in v1.36): tolerations
            with Gt and Lt.
        volume_limit_scaling: Gate VolumeLimitScaling (alpha and off in v1.36, on in v1.37): nodes without a CSI driver
            that wants it so refuse its volumes. The node loop leaves it off: it does not know a new node's drivers.
        storage_capacity_scoring: Gate StorageCapacityScoring (alpha and off in v1.36, on in v1.37): VolumeBinding scores.
    """

    namespaces: Mapping[str, Mapping[str, str]] = {}
    volumes: Volumes | None = None
    devices: Devices | None = None
    minor: int = OLDEST
    taint_comparison: bool = False
    volume_limit_scaling: bool = False
    storage_capacity_scoring: bool = False


def facts_of_scheduler(minor: int) -> ClusterFacts:
    """Return the facts of a cluster without objects, with the gates of kube-scheduler of that minor version."""
    return ClusterFacts(minor=minor, volume_limit_scaling=minor >= 37, storage_capacity_scoring=minor >= 37)
