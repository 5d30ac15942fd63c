"""A cloud in the same process: node groups with instance types, prices, boot times and faults."""

from kubetide.embedded.cloud.catalogue import CATALOGUE, InstanceType
from kubetide.embedded.cloud.cloud import EmbeddedCloud
from kubetide.embedded.cloud.faults import CallFailure, CloudFaults, Window
from kubetide.embedded.cloud.groups import GPU_LABEL, GROUP_LABEL, GroupSpec
from kubetide.embedded.cloud.machines import GroupCounts

__all__ = [
    "CATALOGUE",
    "GPU_LABEL",
    "GROUP_LABEL",
    "CallFailure",
    "CloudFaults",
    "EmbeddedCloud",
    "GroupCounts",
    "GroupSpec",
    "InstanceType",
    "Window",
]
