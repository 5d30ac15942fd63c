"""Names of the annotations that VPA writes on pods or reads.

Source: vertical-pod-autoscaler 1.8.1, pkg/utils/annotations.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from kubetide.units.names import dns1123_label_errors

OBSERVED_CONTAINERS: Final = "vpaObservedContainers"
IN_PLACE_UPDATED: Final = "vpaInPlaceUpdated"
STARTUP_BOOST: Final = "vpaCpuStartupBoost"
"""Followed by a slash and the container's name."""

_SEPARATOR = ", "


def observed_text(containers: tuple[str, ...]) -> str:
    """Return the value of ``vpaObservedContainers``."""
    return _SEPARATOR.join(containers)


def observed_containers(annotations: Mapping[str, str] | None) -> frozenset[str] | None:
    """Return the containers that admission saw, None if that is not known.

    A container that somebody injected after VPA's admission is missing from the list. An empty text is a list of
    none; one with an entry that is no name of a container counts as no list.
    """
    text = (annotations or {}).get(OBSERVED_CONTAINERS)
    return None if text is None else _containers(text)


@lru_cache(maxsize=1 << 12)
def _containers(text: str) -> frozenset[str] | None:
    names = text.split(_SEPARATOR) if text else []
    return frozenset(names) if not any(map(dns1123_label_errors, names)) else None


def boost_annotation(container: str) -> str:
    """Return the name of the annotation that stores a boosted container's original resources."""
    return f"{STARTUP_BOOST}/{container}"


def boosted_containers(annotations: Mapping[str, str] | None) -> tuple[str, ...]:
    """Return the names of the containers that still have their startup CPU boost, sorted."""
    prefix = f"{STARTUP_BOOST}/"
    return tuple(sorted(key.removeprefix(prefix) for key in annotations or () if key.startswith(prefix)))
