"""Cluster facts that filters may read besides nodes and pods: namespaces, volumes, feature gates."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.scheduling.devices.facts import Devices
from kubetide.scheduling.snapshot.volumes import Volumes


class ClusterFacts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that change seldom; a change makes all verdicts invalid.

    Attributes:
        namespaces: Labels of each Namespace object, by name.
        volumes: Claims, volumes and storage classes; None when claims are not looked at.
        devices: Slices, claims and classes of devices; None when they are not looked at.
        taint_comparison: Gate TaintTolerationComparisonOperators (alpha, off in v1.36): tolerations
            with Gt and Lt.
        storage_capacity_scoring: Gate StorageCapacityScoring (alpha, off in v1.36): VolumeBinding scores.
    """

    namespaces: Mapping[str, Mapping[str, str]] = {}
    volumes: Volumes | None = None
    devices: Devices | None = None
    taint_comparison: bool = False
    storage_capacity_scoring: bool = False
