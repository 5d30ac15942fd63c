"""Shared counters of a pool's devices: partitions of one piece of hardware.

Amounts are in billionths. Source: dynamic-resource-allocation v1.36, KEP-4815. As upstream's, the
counters are kept by the name of the pool alone, also where two drivers have pools of one name.
"""

from __future__ import annotations

from kubetide.scheduling.devices.offers import Counters, Offer, Pool
from kubetide.scheduling.devices.use import InUse

CounterState = tuple[tuple[str, str, str, int], ...]
"""Pool, counter set, counter and amount, of what is not 0."""


class CounterBook:
    """The free amounts of each pool's counters, and the amounts that one search has taken."""

    def __init__(self, in_use: InUse) -> None:
        self._in_use = in_use
        self._available: dict[str, Counters] = {}
        self._taken: dict[str, Counters] = {}

    @property
    def state(self) -> CounterState:
        """The taken amounts, to compare and to restore."""
        return tuple(
            (pool, counter_set, name, amount)
            for pool, book in sorted(self._taken.items())
            for counter_set, amounts in sorted(book.items())
            for name, amount in sorted(amounts.items())
            if amount
        )

    def restore(self, state: CounterState) -> None:
        """Reset the taken amounts to a state."""
        self._taken = {}
        for pool, counter_set, name, amount in state:
            self._taken.setdefault(pool, {}).setdefault(counter_set, {})[name] = amount

    def take(self, offer: Offer, pool: Pool) -> bool:
        """Take a device's amounts; return False, and take nothing, if a counter of the pool would be overdrawn."""
        available = self._available.get(offer.id[1])
        if available is None:
            available = self._available[offer.id[1]] = self._left(pool)
        self._add(offer, 1)
        taken = self._taken[offer.id[1]]
        for counter_set, amounts in available.items():
            drawn = taken.get(counter_set, {})
            if any(amount < drawn.get(name, 0) for name, amount in amounts.items()):
                self._add(offer, -1)
                return False
        return True

    def give_back(self, offer: Offer) -> None:
        """Add the amounts of a device back to the pool's counters."""
        if offer.counters:
            self._add(offer, -1)

    def _add(self, offer: Offer, sign: int) -> None:
        book = self._taken.setdefault(offer.id[1], {})
        for counter_set, amounts in offer.counters.items():
            drawn = book.setdefault(counter_set, {})
            for name, amount in amounts.items():
                drawn[name] = drawn.get(name, 0) + sign * amount

    def _left(self, pool: Pool) -> Counters:
        left = {name: dict(amounts) for name, amounts in pool.counters.items()}
        for offer in (*(one for piece in pool.slices for one in piece), *pool.elsewhere):
            if self._in_use.has(offer.id):
                for counter_set, amounts in offer.counters.items():
                    for name, amount in amounts.items():
                        if name in left.get(counter_set, {}):
                            left[counter_set][name] -= amount
        return left
