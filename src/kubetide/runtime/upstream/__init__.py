"""Upstream's programs by their own command lines: every flag, read as upstream reads it."""

from kubetide.runtime.upstream.cluster_autoscaler import Understood, understand
from kubetide.runtime.upstream.table import Flag, Status, cluster_autoscaler_flags

__all__ = ["Flag", "Status", "Understood", "cluster_autoscaler_flags", "understand"]
