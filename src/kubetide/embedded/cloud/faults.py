"""What goes wrong in the embedded cloud, and when: a schedule given from outside.

Whether a fault hits is drawn from (seed, what it would hit), so it depends on no order of calls.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Instant

Call = Literal[
    "refresh", "increase_size", "decrease_target_size", "delete_nodes", "create_group", "delete_group"
]


class Window(msgspec.Struct, frozen=True):
    """Between ``start`` and ``end`` (None: for ever); empty ``group`` and ``zone`` mean all of them."""

    start: Instant
    end: Instant | None = None
    group: str = ""
    zone: str = ""
    probability: float = 1.0

    def covers(self, now: Instant, *, group: str, zone: str = "") -> bool:
        """Return whether it is on, for that group and zone."""
        return (
            self.start <= now
            and (self.end is None or now < self.end)
            and self.group in {"", group}
            and self.zone in {"", zone}
        )

    def hits(self, seed: int, *keys: str | int) -> bool:
        """Return whether it hits what the keys name."""
        return self.probability >= 1.0 or unit_interval(seed, *keys) < self.probability


class CallFailure(msgspec.Struct, frozen=True):
    """Calls that the cloud refuses."""

    window: Window
    calls: tuple[Call, ...] = (
        "increase_size",
        "decrease_target_size",
        "delete_nodes",
        "create_group",
        "delete_group",
    )
    message: str = "the cloud's API is not available"
    error_class: str = "Other"
    error_code: str = "cloudProviderError"
    cause: CloudCause | None = None
    """What the refusal means; None follows the class."""

    def error(self, call: Call, group: str) -> CloudError:
        """Return what the refused call raises."""
        return CloudError(
            f"{call} {group}: {self.message}".replace(" :", ":"),
            error_class=self.error_class,
            error_code=self.error_code,
            cause=self.cause,
        )


class CloudFaults(msgspec.Struct, frozen=True):
    """The schedule.

    Attributes:
        stock_outs: A machine ordered there gets the error ``InsufficientInstanceCapacity``.
        boot_failures: A machine ordered there runs but never becomes a node.
        call_failures: Calls that raise CloudError.
        quota: Machines that may exist in all groups together; None is no quota.
    """

    stock_outs: tuple[Window, ...] = ()
    boot_failures: tuple[Window, ...] = ()
    call_failures: tuple[CallFailure, ...] = ()
    quota: int | None = None


NO_FAULTS = CloudFaults()
