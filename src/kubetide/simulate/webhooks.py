"""What custom kinds of a run need: a place in the store, definitions, and the VPA's webhooks in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kubetide.embedded.apiserver.admission import Caller
from kubetide.embedded.apiserver.admission.caller import Address, CallError
from kubetide.loop import spelled_out
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    STORED_KINDS,
    TIME_TABLE_KINDS,
    VERTICAL_KINDS,
    Kind,
)
from kubetide.simulate.build import Manifests
from kubetide.vertical.admission.registration import IN_PROCESS

_LOOPS = frozenset({"recommender", "updater", "admission"})


class OwnWebhooks:
    """Calls the admission controller of the run itself; all else is left to ``others``.

    Args:
        others: None where nothing outside of the run can be called.
    """

    def __init__(self, others: Caller | None = None) -> None:
        self._others = others
        self._answer: Callable[[bytes], bytes] | None = None

    def serve(self, answer: Callable[[bytes], bytes]) -> None:
        """Answer each review with what this returns for its body, from now on."""
        self._answer = answer

    async def call(self, address: Address, body: bytes) -> bytes:
        """Return the body of the answer. Raises: CallError."""
        if address.url.startswith(IN_PROCESS):
            if self._answer is None:
                raise CallError("the admission controller does not answer yet")
            return self._answer(body)
        if self._others is None:
            raise CallError(f"{address.url} cannot be called in virtual time")
        return await self._others.call(address, body)


def needs_definitions(loops: Iterable[str], manifests: Manifests) -> bool:
    """Return whether the cluster of a run must know VPA objects: a loop reads them, or one is among the objects."""
    return not _LOOPS.isdisjoint(spelled_out(loops)) or any(kind in VERTICAL_KINDS for kind, _ in manifests)


def stored_kinds(loops: Iterable[str], manifests: Manifests) -> tuple[Kind[Any], ...]:
    """Return the kinds that the cluster of a run stores: time tables where their loop runs, or one is among the objects."""
    tables = "schedules" in spelled_out(loops) or any(kind in TIME_TABLE_KINDS for kind, _ in manifests)
    return (*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS, *(TIME_TABLE_KINDS if tables else ()))
