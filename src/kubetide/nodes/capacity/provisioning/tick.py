"""Results of a tick about ProvisioningRequests."""

from __future__ import annotations

import msgspec

from kubetide.objects.capacity import ProvisioningRequest
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod


class RequestsTick(msgspec.Struct):
    """The work on ProvisioningRequests in one tick.

    Attributes:
        changed: Requests whose conditions change, as they will be; by (namespace, name).
        deleted: Requests that go.
        booked: How many pods are booked for, by request.
        picked: The request that is served next; None where none is due, or all pods of those that are due are too young.
        pods: The pods that it asks for and that are old enough, by pod set.
        whole: The pods that it asks for, by pod set.
        processed: Whether a request can be answered, or has failed as its pods cannot be built.
        serving: Whether this tick serves requests, rather than pods.
        buying: Whether to buy nodes for the picked request.
        placed: Those of its pods that fit without new nodes, while it buys for the others.
    """

    changed: dict[Key, ProvisioningRequest] = msgspec.field(default_factory=dict)
    deleted: list[ProvisioningRequest] = msgspec.field(default_factory=list)
    booked: dict[Key, int] = msgspec.field(default_factory=dict)
    picked: ProvisioningRequest | None = None
    pods: list[list[Pod]] = msgspec.field(default_factory=list)
    whole: list[list[Pod]] = msgspec.field(default_factory=list)
    processed: bool = False
    serving: bool = False
    buying: bool = False
    placed: tuple[Key, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether a request waits for its answer, and can get it."""
        return self.picked is not None
