"""Which version of Kubernetes the loops follow, where no flag says it: that of the API server."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kubetide.cluster import HttpCluster
from kubetide.objects.minor_version import NEWEST, OLDEST, minor_of
from kubetide.ports.errors import ApiError
from kubetide.runtime.configuration.config import RunConfig


class _Answer(msgspec.Struct):
    git_version: str = msgspec.field(name="gitVersion")


async def following_server(config: RunConfig, cluster: HttpCluster, warn: Callable[[str], None]) -> RunConfig:
    """Return the configuration with the API server's version where it has none; warn where that cannot be read."""
    if config.loops.kubernetes_version != "":
        return config
    return replace(config, loops=config.loops.following(await version_to_follow(cluster, warn)))


async def version_to_follow(cluster: HttpCluster, warn: Callable[[str], None]) -> str:
    """Return the version, such as ``1.37``, whose rules hold for the API server; warn where its own cannot be read."""
    try:
        answer = msgspec.json.decode(await cluster.get_raw("/version"), type=_Answer)
        minor = minor_of(answer.git_version)
    except (ApiError, ValueError) as error:
        warn(
            f"the API server's version cannot be read: {error}; decisions follow Kubernetes 1.{OLDEST} until the next "
            f"start. Where the cluster is newer, give --kubernetes-version=1.{NEWEST}"
        )
        minor = OLDEST
    return f"1.{minor}"
