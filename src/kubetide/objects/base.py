"""How API objects are read: frozen structs that hold only the fields in use.

An object is decoded at the edge, once, and never written back whole: writes are patches and
subresources. Every list and map is optional, because servers send ``null`` for them; a reader
says ``pod.spec.containers or ()``. Timestamps stay text (RFC 3339); ``units.time`` reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, dataclass_transform

import msgspec

Json = dict[str, Any]
"""One decoded JSON object: the full form, as a user sent it."""

Quantities = dict[str, str | int | float]
"""Resource name to quantity text, as sent; ``units.quantity`` reads the values exactly."""

# Camel-casing gives these wrong; a test holds every struct field against real JSON.
_ACRONYMS = {
    "cluster_ip": "clusterIP",
    "host_ip": "hostIP",
    "non_resource_urls": "nonResourceURLs",
    "pod_cidr": "podCIDR",
    "pod_ip": "podIP",
    "node_id": "nodeID",
    "provider_id": "providerID",
    "share_id": "shareID",
    "volume_id": "volumeID",
}


def json_name(field: str) -> str:
    """Return the JSON name of a struct field: ``pod_ip`` becomes ``podIP``."""
    if field in _ACRONYMS:
        return _ACRONYMS[field]
    head, *tail = field.split("_")
    return head + "".join(part.capitalize() for part in tail)


if TYPE_CHECKING:

    @dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(msgspec.field,))
    class _ApiStructMeta(msgspec.StructMeta):
        """For type checkers: what every subclass inherits from ``ApiStruct``."""

else:
    # Before Python 3.12 a metaclass of one's own makes each call of a class cost three times as much.
    _ApiStructMeta = msgspec.StructMeta


class ApiStruct(
    msgspec.Struct,
    metaclass=_ApiStructMeta,
    frozen=True,
    rename=json_name,
    omit_defaults=True,
    kw_only=True,
    gc=False,
):
    """Base of every API type: immutable, camel-cased, unknown fields skipped on reading."""
