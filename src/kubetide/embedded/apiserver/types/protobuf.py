"""Bodies in Kubernetes' protobuf form, which the typed clients of Go prefer to send.

Answers are always JSON, which such clients accept.
"""

from __future__ import annotations

from kubetide.objects.base import Json
from kubetide.objects.protobuf import ProtobufError, decode_object
from kubetide.ports.errors import BadRequest


def decode_protobuf(raw: bytes) -> Json:
    """Return the object of a body as JSON, with its apiVersion and kind. Raises BadRequest."""
    try:
        return decode_object(raw)
    except ProtobufError as error:
        raise BadRequest(f"the body cannot be read as protobuf: {error}") from error
