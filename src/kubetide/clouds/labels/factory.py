"""Opens the provider ``labels``."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from kubetide.clouds.labels.cloud import LabelsCloud
from kubetide.clouds.labels.config import LabelsConfigError, read_groups
from kubetide.clouds.registry import CloudContext
from kubetide.ports.cloud import Cloud


def connect(context: CloudContext) -> AbstractAsyncContextManager[Cloud]:
    """Return the groups of the cluster's nodes, watched as long as the context is open.

    Raises: LabelsConfigError for bounds or a file that cannot be read, and where there is no cluster.
    """
    flags = context.flags
    groups = read_groups(flags.cloud_config, flags.node_group_label, flags.nodes)
    if context.cluster is None:
        raise LabelsConfigError("cloud-provider: labels reads the nodes of a cluster, and there is none here")
    return LabelsCloud(context.cluster, context.clock, groups).open()
