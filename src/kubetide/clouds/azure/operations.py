"""Long-running operations: changes of sets that Azure has accepted; each that goes on is asked about once a refresh.

Source: cluster-autoscaler cloudprovider/azure, which waits for them in the background.
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.azure.api import ComputeApi, OperationResult, cloud_error
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudError
from kubetide.units.time import Duration, minutes

_WAIT = minutes(30)
_AT_ONCE = 8
PREEMPTED = "OperationPreempted"
"""The code of an order that another change of the set has replaced."""


class DeletionOrder(NamedTuple):
    """Machines whose deletion was ordered; ``again`` once the order was sent a second time."""

    instance_ids: tuple[str, ...]
    force: bool
    again: bool = False


class _Operation(NamedTuple):
    key: str
    url: str
    until: Duration
    deletion: DeletionOrder | None


class CompletedOperation(NamedTuple):
    """A change that came to its end: the set's key, why it failed if it did, and the machines of a deletion."""

    key: str
    error: CloudError | None
    deletion: DeletionOrder | None


class Operations:
    """The operations that go on."""

    def __init__(self, api: ComputeApi, clock: Clock) -> None:
        self._api, self._clock = api, clock
        self._open: list[_Operation] = []

    def begin(self, key: str, url: str, deletion: DeletionOrder | None = None) -> None:
        """Note a change; without a URL it is done."""
        if url:
            until = Duration(self._clock.monotonic() + _WAIT)
            self._open.append(_Operation(key, url, until, deletion))

    async def completed(self) -> list[CompletedOperation]:
        """Return the operations that have come to their end since the last call."""
        open_, self._open = self._open, []
        results = await in_parallel(open_, self._result, limit=_AT_ONCE)
        found: list[CompletedOperation] = []
        for one, result in zip(open_, results, strict=True):
            if result.is_done:
                found.append(CompletedOperation(one.key, result.error, one.deletion))
            else:
                self._open.append(one)
        return found

    async def _result(self, one: _Operation) -> OperationResult:
        if self._clock.monotonic() >= one.until:
            return OperationResult(
                is_done=True, error=cloud_error("Timeout", f"{one.url} is not done in time")
            )
        try:
            return await self._api.operation_result(one.url)
        except CloudError as error:
            # The question failed, not the change: it is asked again until its time is over.
            return OperationResult(is_done=False, error=error)
