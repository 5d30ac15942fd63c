"""Constraints between the devices of one claim: one attribute value for all, or distinct values.

Source: dynamic-resource-allocation v1.36, whose ``distinctAttribute`` remembers one device a request:
of several devices of one request each is compared with the one before.
"""

from __future__ import annotations

from kubetide.objects.resource import DeviceAttribute, DeviceConstraint
from kubetide.scheduling.devices.offers import Offer


class Constraint:
    """One constraint and its devices so far."""

    def __init__(self, given: DeviceConstraint) -> None:
        self._requests = given.requests or ()
        self._distinct = given.match_attribute is None
        self._attribute = (given.distinct_attribute if self._distinct else given.match_attribute) or ""
        self._count = 0
        self._shared: DeviceAttribute | None = None
        self._seen: dict[str, DeviceAttribute] = {}

    @property
    def state(self) -> tuple[object, ...]:
        """All input of its later verdicts."""
        shared = self._shared if self._count and not self._distinct else None
        seen = tuple(sorted((name, repr(_value(one))) for name, one in self._seen.items()))
        return self._count, repr(shared and _value(shared)), seen if self._distinct else ()

    def add(self, request: str, alternative: str, offer: Offer) -> bool:
        """Add a device; return False if the constraint forbids it."""
        if not self._concerns(request, alternative):
            return True
        value = _attribute(offer, self._attribute)
        if value is None or (self._count and _value(value) is None):
            return False
        if self._count:
            if self._distinct:
                if any(_same(value, other) for other in self._seen.values()):
                    return False
            elif self._shared is None or not _same(value, self._shared):
                return False
        else:
            self._shared = value
        self._seen[request] = value
        self._count += 1
        return True

    def remove(self, request: str, alternative: str) -> None:
        """Remove a device."""
        if self._concerns(request, alternative):
            self._seen.pop(request, None)
            self._count -= 1

    def _concerns(self, request: str, alternative: str) -> bool:
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests


def _attribute(offer: Offer, name: str) -> DeviceAttribute | None:
    attributes = offer.device.attributes or {}
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        if slash and domain == offer.driver:
            found = attributes.get(identifier)
    return found


def _value(one: DeviceAttribute) -> tuple[str, object] | None:
    """The kind and value of an attribute; None when it has none of a known kind."""
    for kind in ("string_value", "int_value", "bool_value", "version_value"):
        value = getattr(one, kind)
        if value is not None:
            return kind, value
    return None


def _same(one: DeviceAttribute, other: DeviceAttribute) -> bool:
    found = _value(one)
    return found is not None and getattr(other, found[0]) == found[1]
