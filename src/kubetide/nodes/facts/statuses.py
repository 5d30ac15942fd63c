"""Writes of statuses of capacity requests."""

from __future__ import annotations

from typing import Any

import msgspec

from kubetide.nodes.decision import WriteStatus
from kubetide.objects.kinds import Kind

_encoder = msgspec.json.Encoder(order="deterministic")


def status_write(kind: Kind[Any], item: Any) -> WriteStatus:
    """Return the write of an object's present status; fields that it lacks are removed."""
    fields = msgspec.structs.fields(item.status)
    written = msgspec.to_builtins(item.status)
    status = {field.encode_name: written.get(field.encode_name) for field in fields}
    if status.get("conditions"):
        # An empty message is one that the schema asks for.
        status["conditions"] = [{"message": "", **one} for one in status["conditions"]]
    meta = item.metadata
    return WriteStatus(
        resource=kind.plural,
        namespace=meta.namespace,
        name=meta.name,
        version=meta.resource_version,
        status=msgspec.Raw(_encoder.encode(status)),
    )
