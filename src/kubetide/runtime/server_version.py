"""Which version of Kubernetes the loops follow, where no flag says it: that of the API server."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec.structs import replace

from kubetide.cluster import HttpCluster
from kubetide.objects.minor_version import NEWEST, OLDEST, minor_of
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, InternalError, TooManyRequests, Unauthorized, Unavailable
from kubetide.runtime.configuration.config import RunConfig
from kubetide.units.time import seconds

_PAUSE = seconds(5)
_PASSING = (Unavailable, Unauthorized, TooManyRequests, InternalError)
"""Errors that another request may not meet."""


class _Answer(msgspec.Struct):
    git_version: str = msgspec.field(name="gitVersion")


async def with_server_version(
    config: RunConfig, cluster: HttpCluster, clock: Clock, warn: Callable[[str], None]
) -> RunConfig:
    """Return the configuration with the API server's version where it has none.

    Waits for a server that does not answer: by the rules of another version a loop could take away what the
    cluster's own would need, such as the condition by which an HPA comes back from zero.
    """
    if config.loops.kubernetes_version != "":
        return config
    waits = False
    while True:
        try:
            version = await version_to_follow(cluster, warn, passing=_PASSING)
        except _PASSING as error:
            if not waits:
                warn(
                    f"the API server's version cannot be read yet: {error}; until then nothing is decided. "
                    f"--kubernetes-version=1.{NEWEST} goes on without it"
                )
            waits = True
            await clock.sleep(_PAUSE)
        else:
            return replace(config, loops=config.loops.with_kubernetes_version(version))


async def version_to_follow(
    cluster: HttpCluster,
    warn: Callable[[str], None],
    *,
    passing: tuple[type[ApiError], ...] = (Unavailable,),
) -> str:
    """Return the version, such as ``1.37``, whose rules hold for the API server; warn where it does not say its own.

    Raises: the errors of ``passing``; Unavailable is that of no answer in time.
    """
    try:
        answer = msgspec.json.decode(await cluster.get_raw("/version"), type=_Answer)
        minor = minor_of(answer.git_version)
    except passing:
        raise
    except (ApiError, ValueError) as error:
        warn(
            f"the API server's version cannot be read: {error}; decisions follow Kubernetes 1.{OLDEST} until the next "
            f"start. Where the cluster is newer, give --kubernetes-version=1.{NEWEST}"
        )
        minor = OLDEST
    return f"1.{minor}"
