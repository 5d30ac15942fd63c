"""``--cloud-provider=labels``: node groups by a label of the nodes that there are; read only."""

from __future__ import annotations

from kubetide.clouds.labels.cloud import LabelsCloud
from kubetide.clouds.labels.config import Bounds, GroupsConfig, LabelsConfigError, read_groups

__all__ = ["Bounds", "GroupsConfig", "LabelsCloud", "LabelsConfigError", "read_groups"]
