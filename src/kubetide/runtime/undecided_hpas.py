"""What is said of HPAs about which nothing is decided for a while, and of those about which something is again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.units.lists import listed
from kubetide.units.time import Instant, before, minutes

_PATIENCE: Final = minutes(2)
"""Pods that have just started have no samples for so long, which is nothing to be said."""
_NAMED: Final = 3
"""HPAs that are named with their errors; of more at once the first is, and the others are counted."""


class UndecidedHpas:
    """Remembers what was said, so that each HPA, and its end, is said once."""

    def __init__(self) -> None:
        self._since: dict[str, Instant] = {}
        self._told: set[str] = set()

    def sentences(self, errors: Mapping[str, str], now: Instant) -> list[str]:
        """Return what is new, given why nothing is decided now, by NAMESPACE/NAME of HPAs."""
        self._since = {hpa: self._since.get(hpa, now) for hpa in errors}
        ended = sorted(self._told - errors.keys())
        patient = before(now, _PATIENCE)
        new = sorted(hpa for hpa, since in self._since.items() if since <= patient and hpa not in self._told)
        self._told = {*(self._told & errors.keys()), *new}
        found = [
            f"no replicas are decided for HPA {hpa}: {errors[hpa]}; ask: kubetide explain hpa {hpa}"
            for hpa in new
        ]
        if len(new) > _NAMED:
            found = [f"{found[0]}; likewise {len(new) - 1} other HPAs, which kubetide status names"]
        if ended:
            found.append(f"HPA {listed(ended, _NAMED)}: decided about again, or gone")
        return found
