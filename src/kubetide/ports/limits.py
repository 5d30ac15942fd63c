"""Limits of the whole cluster: those of upstream's flags, and a provider's own.

Source: cluster-autoscaler core (Jul 2026), resource limiter; flags ``--cores-total``, ``--memory-total``,
``--gpu-total``.
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.objects.base import ApiStruct
from kubetide.units.numbers import NumberError, parse_integer

UNLIMITED = (1 << 63) - 1
"""The maximum of a resource that has none."""


class LimitError(ValueError):
    """An unreadable limit; the text is upstream's."""


class MinMax(NamedTuple):
    """A minimum and a maximum total."""

    minimum: int
    maximum: int


class GpuLimit(NamedTuple):
    """A minimum and a maximum number of GPUs of a type."""

    type: str
    minimum: int
    maximum: int


class ResourceLimits(ApiStruct):
    """Limits by resource name in whole units (memory in bytes). A minimum of 0 or less counts as none."""

    minimum: dict[str, int] | None = None
    maximum: dict[str, int] | None = None

    def least(self, resource: str) -> int:
        """Return the minimum of a resource; 0 without one."""
        return max((self.minimum or {}).get(resource, 0), 0)

    def most(self, resource: str) -> int:
        """Return the maximum of a resource; ``UNLIMITED`` without one."""
        return (self.maximum or {}).get(resource, UNLIMITED)

    def has_minimum(self, resource: str) -> bool:
        """Return whether a minimum is set."""
        return self.least(resource) > 0

    def has_maximum(self, resource: str) -> bool:
        """Return whether a maximum is set, 0 included."""
        return resource in (self.maximum or {})

    def resources(self) -> tuple[str, ...]:
        """Return the names of all limited resources, sorted."""
        names = {*(self.minimum or {}), *(self.maximum or {})}
        return tuple(sorted(one for one in names if self.has_minimum(one) or self.has_maximum(one)))

    def __str__(self) -> str:
        """Return the limits as upstream prints them: ``{cpu : 0 - 10}, {memory : …}``."""
        return ", ".join(f"{{{name} : {self.least(name)} - {self.most(name)}}}" for name in self.resources())


def parse_min_max(text: str) -> MinMax:
    """Return the limits of ``MIN:MAX``. Raises LimitError."""
    low, colon, high = text.partition(":")
    if not colon:
        raise LimitError(f"wrong nodes configuration: {text}")
    limits = MinMax(_integer(low, "min"), _integer(high, "max"))
    if limits.minimum < 0:
        raise LimitError("min size must be greater or equal to  0")
    if limits.maximum < limits.minimum:
        raise LimitError("max size must be greater or equal to min size")
    return limits


def parse_gpu_limit(text: str) -> GpuLimit:
    """Return the limits of ``TYPE:MIN:MAX``. Raises LimitError."""
    parts = text.split(":")
    if len(parts) != 3:
        raise LimitError(f"incorrect gpu limit specification: {text}")
    limit = GpuLimit(parts[0], _gpus(parts[1], "min", text), _gpus(parts[2], "max", text))
    if limit.minimum < 0:
        raise LimitError(f"incorrect gpu limit - min is less than 0; {text}")
    if limit.maximum < 0:
        raise LimitError(f"incorrect gpu limit - max is less than 0; {text}")
    if limit.minimum > limit.maximum:
        raise LimitError(f"incorrect gpu limit - min is greater than max; {text}")
    return limit


def _integer(text: str, bound: str) -> int:
    try:
        return parse_integer(text)
    except NumberError as error:
        raise LimitError(
            f"failed to set {bound} size: {text}, expected integer, err: strconv.ParseInt: {error}"
        ) from error


def _gpus(text: str, bound: str, whole: str) -> int:
    try:
        return parse_integer(text)
    except NumberError as error:
        raise LimitError(f"incorrect gpu limit - {bound} is not integer: {whole}") from error
