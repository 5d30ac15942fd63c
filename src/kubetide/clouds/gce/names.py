"""Names of new instances: the group's base name and four letters that read as no word."""

from __future__ import annotations

from collections.abc import Iterable

from kubetide.units.seeds import unit_interval

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class Names:
    """Draws names; each draw differs from all earlier ones of this seed."""

    def __init__(self, seed: int) -> None:
        self._seed, self._drawn = seed, 0

    def draw(self, base: str, count: int, taken: Iterable[str]) -> list[str]:
        """Return that many new names, none of them taken."""
        used = set(taken)
        names: list[str] = []
        while len(names) < count:
            self._drawn += 1
            draws = (unit_interval(self._seed, base, self._drawn, at) for at in range(4))
            name = f"{base}-" + "".join(_LETTERS[int(draw * len(_LETTERS))] for draw in draws)
            if name not in used:
                used.add(name)
                names.append(name)
        return names
