"""The instance types that this process knows: asked for once a day, and when a group has one that is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.instance_types import TABLE, InstanceType, from_api, shipped_types, with_shipped
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, after, hours, minutes

_LIFE: Final = hours(24)
_RETRY: Final = minutes(30)


class InstanceTypes:
    """Instance types by name; ``failure`` says why the EC2 API could not be asked, empty when it could."""

    def __init__(self, api: AwsApi | None, *, table: Mapping[str, InstanceType] | None = None) -> None:
        """``api`` None keeps to the shipped table, as ``--aws-use-static-instance-list`` does; ``table`` replaces it."""
        self._api = api
        self.by_name: Mapping[str, InstanceType] = shipped_types() if table is None else table
        self.failure = ""
        self._next = Instant(0)
        self._asked_at: Instant | None = None

    async def refresh(self, now: Instant, used: set[str]) -> None:
        """Ask for the types when their time has come, or when one that is used is not known."""
        if self._api is None:
            return
        unknown = bool(used - self.by_name.keys())
        may_ask = self._asked_at is None or now >= after(self._asked_at, _RETRY)
        if now < self._next and not (unknown and may_ask):
            return
        self._asked_at = now
        try:
            read = [from_api(each) for each in await self._api.instance_types()]
        except CloudError as error:
            self.failure = str(error)
            self._next = after(now, _RETRY)
            return
        self.failure = ""
        # No pod fits a machine of no CPUs: where an answer leaves them out, the shipped table says what it has.
        self.by_name = with_shipped(each for each in read if each.vcpu and each.memory_mib)
        self._next = after(now, _LIFE)

    def doubts(self, names: Iterable[str]) -> tuple[str, ...]:
        """Return one sentence if EC2 could not be asked for one of these types, none if it was not needed."""
        if not self.failure or all(
            name in self.by_name and self.by_name[name].source != TABLE for name in names
        ):
            return ()
        return (f"instance types are those of the {TABLE} only: {self.failure}",)
