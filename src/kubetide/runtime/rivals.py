"""Which HPAs another controller works on: seen from who wrote their status, and left alone.

Cluster Autoscaler is kept out by its Lease. Upstream's HPA controller has none of its own: its process
holds the one of kube-controller-manager whether that controller is on or off. What it does leave is
its name in the ``managedFields`` of each status it writes (API concepts, "Field management").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from kubetide.objects.base import json_name
from kubetide.objects.kinds import HPAS, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.units.time import (
    Instant,
    TimeFormatError,
    before,
    format_duration,
    minutes,
    parse_rfc3339,
    seconds,
)

OWN = "kubetide"
"""The manager that the API server takes from our User-Agent."""

QUIET = minutes(10)
"""A controller that has written nothing for so long is taken to be gone."""

_LOOK = seconds(60)
_RETRY = seconds(5)

Key = tuple[str, str]


class Entry(msgspec.Struct, frozen=True, rename=json_name):
    """One entry of ``managedFields``."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    time: str = ""


class _Meta(msgspec.Struct, rename=json_name):
    name: str = ""
    namespace: str = ""
    managed_fields: tuple[Entry, ...] | None = None


class _Managed(msgspec.Struct, rename=json_name):
    api_version: str = ""
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)


_MANAGED = Kind(HPAS.group, HPAS.version, HPAS.kind, HPAS.plural, _Managed)


def rival_of(entries: Iterable[Entry], now: Instant, own: str = OWN) -> str:
    """Gives who else has written the status of late; empty for nobody."""
    for entry in entries:
        if entry.subresource != "status" or entry.manager == own:
            continue
        try:
            written = parse_rfc3339(entry.time)
        except TimeFormatError:
            continue
        if written >= before(now, QUIET):
            return entry.manager
    return ""


class Rivals:
    """Keeps up to date which HPAs another controller works on.

    Args:
        tell: Takes a sentence for each that begins or ceases to be left alone.
        own: The manager that this process's writes are noted under.
        server_now: Gives the time by the API server's clock, which stamps what is written; by default ours.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        tell: Callable[[str], None],
        *,
        own: str = OWN,
        server_now: Callable[[], Instant] | None = None,
    ) -> None:
        self._server_now = server_now or clock.now
        self._own = own
        self._cluster = cluster
        self._clock = clock
        self._tell = tell
        self._found: dict[Key, str] = {}

    @property
    def found(self) -> Mapping[Key, str]:
        """By HPA, the manager that works on it."""
        return self._found

    async def look(self) -> None:
        """Looks at all HPAs. Raises ApiError."""
        listing = await self._cluster.list(_MANAGED)
        now = self._server_now()
        found = {
            (item.metadata.namespace, item.metadata.name): rival
            for item in listing.items
            if (rival := rival_of(item.metadata.managed_fields or (), now, self._own))
        }
        for key in sorted(found.keys() - self._found.keys()):
            self._tell(
                f"HPA {'/'.join(key)} is left alone: {found[key]} writes its status; switch one of the two off "
                f"(kube-controller-manager --controllers=*,-horizontal-pod-autoscaler-controller), and it is "
                f"taken on {format_duration(QUIET)} after the last such write"
            )
        for key in sorted(self._found.keys() - found.keys()):
            self._tell(f"HPA {'/'.join(key)} is not left alone any more")
        self._found = found

    async def known(self) -> None:
        """Returns when all HPAs have been looked at once."""
        while not await self._tried():
            await self._clock.sleep(_RETRY)

    async def run(self) -> None:
        """Looks once a minute; what cannot be read stays as it was found last."""
        while True:
            await self._clock.sleep(_LOOK)
            await self._tried()

    async def _tried(self) -> bool:
        try:
            await self.look()
        except ApiError as error:
            self._tell(f"cannot see who else writes to HPAs: {error}")
            return False
        return True
