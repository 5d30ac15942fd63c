"""Allocated devices by claim, and what is free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kubetide.scheduling.devices.offers import DeviceId, Offer


class Given(NamedTuple):
    """One device for one request.

    Attributes:
        request: Name of the request, with the alternative behind a slash where there are any.
        admin: Whether it was had beside others' use, which then does not count.
        consumed: What it takes of a device that several claims share, in billionths; None of whole ones.
    """

    offer: Offer
    request: str
    admin: bool
    consumed: Mapping[str, int] | None


class InUse(NamedTuple):
    """The devices of allocated claims.

    Attributes:
        devices: How many claims have a whole device, more than one where the cluster says so.
        shares: How many claims share a device.
        amounts: What those take of it, in billionths; only where their allocations say.
    """

    devices: dict[DeviceId, int]
    shares: dict[DeviceId, int]
    amounts: dict[DeviceId, dict[str, int]]

    def has(self, device: DeviceId) -> bool:
        """Return whether any claim has the device or a share of it."""
        return device in self.devices or device in self.shares or device in self.amounts
