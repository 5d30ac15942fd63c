"""Which scale sets belong to the autoscaler: ``label:K=V,…[,min=N][,max=M]``.

A set must match every spec; its tags ``min`` and ``max`` beat the specs, whose largest minimum and
smallest maximum hold together.

Source: cluster-autoscaler cloudprovider/azure, ``--node-group-auto-discovery``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kubetide.clouds.common.discovery import pairs_of
from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_integer


class SetDiscovery(NamedTuple):
    """Tags that a set must have, and its bounds where given."""

    selector: Mapping[str, str]
    min_size: int | None = None
    max_size: int | None = None


class Bounds(NamedTuple):
    """Bounds of a discovered set; None where nothing gives one."""

    min_size: int | None
    max_size: int | None


def parse_discovery(spec: str) -> SetDiscovery:
    """Return what one spec asks for. Raises CloudError that quotes the wrong part."""
    selector: dict[str, str] = {}
    least = most = None
    for key, value in pairs_of(spec, "label"):
        if not key or not value:
            raise CloudError("empty value not allowed in key=value tag pairs")
        if key == "min":
            least = _size(value, "minimum")
        elif key == "max":
            most = _size(value, "maximum")
        else:
            selector[key] = value
    if least is not None and most is not None and most < least:
        raise CloudError(f"maximum size {most} must be greater than or equal to minimum size {least}")
    return SetDiscovery(selector, least, most)


def _size(text: str, what: str) -> int:
    size = _whole(text)
    if size is None or size < 0:
        raise CloudError(f"invalid {what} nodes: {text}")
    return size


def _whole(text: str) -> int | None:
    try:
        return parse_integer(text)
    except NumberError:
        return None


def matching_bounds(specs: Sequence[SetDiscovery], tags: Mapping[str, str | None]) -> Bounds | None:
    """Return the bounds of the specs for a set with these tags, None where the set does not match.

    A spec without tags matches nothing.
    """
    if not specs:
        return None
    for spec in specs:
        if not spec.selector or any(tags.get(key) != value for key, value in spec.selector.items()):
            return None
    least = [spec.min_size for spec in specs if spec.min_size is not None]
    most = [spec.max_size for spec in specs if spec.max_size is not None]
    return Bounds(max(least, default=None), min(most, default=None))


def set_bounds(bounds: Bounds, tags: Mapping[str, str | None]) -> tuple[int, int]:
    """Return minimum and maximum of a set: its tags, else the specs' bounds. Raises CloudError."""
    least = _bound(tags, "min", bounds.min_size)
    most = _bound(tags, "max", bounds.max_size)
    if most < least:
        raise CloudError(f"maximum size must be greater than minimum size - max:{most} < min:{least}")
    return least, most


def _bound(tags: Mapping[str, str | None], tag: str, of_specs: int | None) -> int:
    if tag not in tags:
        if of_specs is None:
            raise CloudError(f"no tag {tag} and no {tag} in the discovery specs")
        return of_specs
    text = tags[tag] or ""
    size = _whole(text)
    if size is None or size < 0:
        raise CloudError(f"invalid {tag} size specified in tag {tag}={text}")
    return size
