"""From amounts to quantities: rounding, whole cores, minimum and maximum of policies.

Each step works on one resource of all containers. A quantity that comes out of a policy keeps the
policy's text, as upstream's does. Source: VPA 1.8, pkg/recommender/model and the post-processors.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from kubetide.objects.vpa import ContainerPolicy
from kubetide.units.quantity import Format, Quantity, bytes_to_text, milli_to_text
from kubetide.units.vectors import BoolVector, Int64Vector
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.resources.policies import allowed

NO_CAP = (1 << 63) - 1
_UNITS = (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10))


class Caps(msgspec.Struct, frozen=True):
    """Bounds of one resource of one container.

    Attributes:
        least, most: Smallest amount that is not below the minimum, greatest that is not above the maximum.
        low, high: What stands in for an amount below or above.
        minimum, maximum: The bounds themselves; None for none.
    """

    least: int = -1
    most: int = NO_CAP
    low: str = ""
    high: str = ""
    minimum: Quantity | None = None
    maximum: Quantity | None = None


NO_CAPS = Caps()


def caps_of(policy: ContainerPolicy | None, resource: str, settings: Settings) -> Caps:
    """Return the bounds of a container: its policy's, and the global maximum if the policy has none.

    A maximum beats a minimum; zero is no bound, but a maximum of zero hides the global one.
    """
    minimum = allowed(policy.min_allowed, resource) if policy else None
    names = (policy.max_allowed if policy else None) or {}
    maximum = allowed(names, resource) if resource in names else settings.max_allowed(resource)
    if minimum is not None and not minimum.mantissa:
        minimum = None
    if maximum is not None and not maximum.mantissa:
        maximum = None
    if minimum is None and maximum is None:
        return NO_CAPS
    high = "" if maximum is None else str(maximum)
    low = high if maximum is not None and minimum is not None and minimum > maximum else str(minimum)
    return Caps(
        -1 if minimum is None else _ceil(minimum, resource),
        NO_CAP if maximum is None else -_ceil(-maximum, resource),
        low,
        high,
        minimum,
        maximum,
    )


def _ceil(bound: Quantity, resource: str) -> int:
    """Return the smallest amount, in millicores or bytes, that is not less than the bound."""
    shift = bound.exponent + (3 if resource == "cpu" else 0)
    unit = int(10 ** abs(shift))
    found = bound.mantissa * unit if shift >= 0 else -(-bound.mantissa // unit)
    return max(min(found, NO_CAP), -NO_CAP)


def rounded(amount: Int64Vector, factor: int) -> Int64Vector:
    """Return amounts rounded up to a multiple of a factor; a factor that is not positive changes nothing."""
    return amount if factor <= 1 else -(-amount // factor) * factor


def whole_cores(amount: Int64Vector, where: BoolVector) -> Int64Vector:
    """Return millicores, rounded up to whole cores if asked for."""
    return np.where(where, -(-amount // 1000) * 1000, amount)


class Texts:
    """Quantities as texts; each amount is printed once."""

    def __init__(self, settings: Settings) -> None:
        self._humanize = settings.humanize_memory

    def of(self, resource: str, amount: Int64Vector) -> list[str]:
        """Return the text of each amount."""
        return self._cpu_texts(amount.tolist()) if resource == "cpu" else self._memory_texts(amount.tolist())

    def _cpu_texts(self, amount: Sequence[int]) -> list[str]:
        return [f"{one}m" if one % 1000 else milli_to_text(one) for one in amount]

    def _memory_texts(self, amount: Sequence[int]) -> list[str]:
        if self._humanize:
            return [str(humanized(one)) for one in amount]
        return [str(one) if one % 1000 and one % 1024 else bytes_to_text(one) for one in amount]

    def capped(
        self,
        resource: str,
        amount: Int64Vector,
        uncapped: Sequence[str],
        caps: Sequence[Caps],
        bounds: Int64Vector,
    ) -> list[str]:
        """Return the text of each amount within its bounds.

        Args:
            uncapped: The texts of the amounts themselves.
            bounds: (2, containers) least and most.
        """
        texts = list(uncapped)
        if resource == "memory" and self._humanize:
            return [_capped_exactly(text, one) for text, one in zip(texts, caps, strict=True)]
        for cell in np.flatnonzero(amount < bounds[0]).tolist():
            texts[cell] = caps[cell].low
        # An amount below the minimum has its text; where the maximum is lower still, that text is the maximum's.
        for cell in np.flatnonzero((amount > bounds[1]) & (amount >= bounds[0])).tolist():
            texts[cell] = caps[cell].high
        return texts


def humanized(amount: int) -> Quantity:
    """Return bytes with a unit and two decimals, as the flag humanize-memory prints them."""
    for unit, size in _UNITS:
        if amount >= size:
            return Quantity.parse(f"{amount / size:.2f}{unit}")
    return Quantity(amount, 0, Format.BINARY_SI)


def _capped_exactly(text: str, caps: Caps) -> str:
    value = Quantity.parse(text)
    if caps.minimum is not None and value < caps.minimum:
        return caps.low
    return caps.high if caps.maximum is not None and value > caps.maximum else text
