"""Upstream's programs with their own command lines: every flag, parsed as upstream parses it."""

from kubetide.runtime.upstream.cluster_autoscaler import Understood, understand
from kubetide.runtime.upstream.table import Flag, Status, cluster_autoscaler_flags

__all__ = ["Flag", "Status", "Understood", "cluster_autoscaler_flags", "understand"]
