"""Spot prices of the instance types that groups ask for on the spot market, by zone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from kubetide.clouds.aws.api import AwsApi
from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_float
from kubetide.units.time import Instant, after, minutes

_LIFE: Final = minutes(10)


class SpotPrices:
    """Prices by type and zone, asked for every ten minutes, and at once for a type that is new.

    A role of upstream's policy may not ask; then no spot price is known, and everything else works.
    """

    def __init__(self, api: AwsApi) -> None:
        self._api = api
        self.by_place: Mapping[tuple[str, str], float] = {}
        self._next = Instant(0)
        self._asked: frozenset[str] = frozenset()

    async def refresh(self, now: Instant, used: set[str]) -> None:
        """Ask for the prices of the types that are used, when their time has come."""
        if not used or (now < self._next and used <= self._asked):
            return
        self._next, self._asked = after(now, _LIFE), frozenset(used)
        try:
            found = await self._api.spot_prices(sorted(used), now)
        except CloudError:
            return
        newest: dict[tuple[str, str], tuple[str, float]] = {}
        for each in found:
            key = each.get("InstanceType", ""), each.get("AvailabilityZone", "")
            with suppress(NumberError):
                # Times of one answer are of one form, so their texts are in their order.
                price = str(each.get("Timestamp", "")), parse_float(each.get("SpotPrice", ""))
                newest[key] = max(newest.get(key, price), price)
        self.by_place = {key: price for key, (_, price) in newest.items()}
