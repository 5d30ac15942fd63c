"""The guard between loops and world: every write and every cloud call asks it first.

A guard that says no raises ``Withheld`` (or ``CloudWithheld``), which the loops take as neither done
nor failed. So a program that only advises cannot write whatever its loops do, and one that has lost
its lease cannot either. What is not known to be a read counts as a write, so a method that a port
gains later is guarded from its first day.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, cast

from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import CloudWithheld, Forbidden, Withheld

_CLUSTER_READS = frozenset({"get", "list", "watch", "get_scale", "kinds", "list_and_watch", "spread"})
_TOLD_READS = frozenset({"get", "get_scale"})
_CLOUD_READS = frozenset(
    {
        "name",
        "creates_groups",
        "gpu_label",
        "gpu_types",
        "group_candidates",
        "knows_machines",
        "scaling_policies",
        "pod_prices",
        "refresh",
        "resource_limits",
    }
)


class Guard(Protocol):
    """Decides whether anything may be changed now."""

    def refusal(self) -> str:
        """Return why nothing may be changed now, as a sentence; empty if it may."""
        ...


class Advice:
    """The guard of a program that only advises; ``why`` names the setting that makes it so."""

    def __init__(self, why: str = "nothing is written without --act") -> None:
        self._why = why

    def refusal(self) -> str:
        """Always refuses."""
        return f"this run only advises: {self._why}"


class AllOf:
    """The guard of a program that acts: it may write if each of these guards allows it; without guards always."""

    def __init__(self, guards: Sequence[Guard]) -> None:
        self._guards = tuple(guards)

    def refusal(self) -> str:
        """Return the first refusal."""
        return next((why for guard in self._guards if (why := guard.refusal())), "")


def guarded_cluster(
    cluster: Cluster, guard: Guard, *, refused: Callable[[str], None] = lambda _: None
) -> Cluster:
    """Return the cluster with guarded writes. They raise ``Withheld`` besides the port's errors.

    ``refused`` is called with the error of each request that the account may not make; those of lists and watches
    are told by the caches.
    """
    return cast("Cluster", _GuardedCluster(cluster, guard, refused))


def guarded_cloud(cloud: Cloud, guard: Guard) -> Cloud:
    """Return the cloud with guarded commands. They raise ``CloudWithheld`` besides the port's errors."""
    return cast("Cloud", _Guarded(cloud, guard, _CLOUD_READS, CloudWithheld))


class _Guarded:
    def __init__(
        self, inner: object, guard: Guard, reads: frozenset[str], error: Callable[[str], Exception]
    ) -> None:
        self._inner = inner
        self._guard = guard
        self._reads = reads
        self._error = error

    def refusal(self) -> str:
        """Return why writes would be withheld now; see ``ports.cluster.withheld``."""
        return self._guard.refusal()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if name in self._reads:
            return found
        write: Callable[..., Awaitable[Any]] = found

        async def asked(*args: Any, **kwargs: Any) -> Any:
            if why := self._guard.refusal():
                raise self._error(why)
            return await write(*args, **kwargs)

        return asked


class _GuardedCluster(_Guarded):
    def __init__(self, inner: Cluster, guard: Guard, refused: Callable[[str], None]) -> None:
        super().__init__(inner, guard, _CLUSTER_READS, Withheld)
        self._refused = refused

    def __getattr__(self, name: str) -> Any:
        found = super().__getattr__(name)
        if name in _CLUSTER_READS and name not in _TOLD_READS:
            return found
        request: Callable[..., Awaitable[Any]] = found

        async def told(*args: Any, **kwargs: Any) -> Any:
            try:
                return await request(*args, **kwargs)
            except Forbidden as error:
                self._refused(str(error))
                raise

        return told
