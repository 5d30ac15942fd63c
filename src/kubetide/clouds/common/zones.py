"""The zone of each of a cloud's networks (subnets, vSwitches); each is asked for once."""

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
        if network not in self._known:
            self._known[network] = await self._ask(network)
        return self._known[network]

    async def grouped(self, networks: Iterable[str]) -> dict[str, list[str]]:
        """Return the networks by their zones, without those that are in none. Raises CloudError."""
        found: dict[str, list[str]] = {}
        for network in networks:
            zone = await self.of(network)
            if zone:
                found.setdefault(zone, []).append(network)
        return found
