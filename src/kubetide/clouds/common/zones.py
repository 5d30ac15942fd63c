"""The zone of each of a cloud's networks (subnets, vSwitches); each is asked for until it is known."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable


class NetworkZones:
    """NetworkZones by the ids of networks.

    Args:
        ask: Returns the zone of a network, empty for one that there is not. Raises CloudError.
    """

    def __init__(self, ask: Callable[[str], Awaitable[str]]) -> None:
        self._ask = ask
        self._known: dict[str, str] = {}

    async def of(self, network: str) -> str:
        """Return the zone of a network. Raises CloudError."""
        zone = self._known.get(network) or await self._ask(network)
        if zone:
            self._known[network] = zone
        return zone

    async def grouped(self, networks: Iterable[str]) -> dict[str, list[str]]:
        """Return the networks by their zones, without those that are in none. Raises CloudError."""
        found: dict[str, list[str]] = {}
        for network in networks:
            zone = await self.of(network)
            if zone:
                found.setdefault(zone, []).append(network)
        return found
