"""Webhooks of a run's own admission controller, answered in virtual time."""

from __future__ import annotations

from collections.abc import Callable

from kubetide.embedded.apiserver.admission import Caller
from kubetide.embedded.apiserver.admission.caller import Address, CallError
from kubetide.vertical.admission.registration import IN_PROCESS


class OwnWebhooks:
    """Calls the admission controller of the run itself; other webhooks are left to ``others``.

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
