"""Refusals that only an HTTP face knows, in the API server's words (apiserver v1.36, endpoints/handlers)."""

from __future__ import annotations

import json

from kubetide.objects.base import Json
from kubetide.objects.field_errors import invalid
from kubetide.ports.errors import ApiError, Invalid

JSON_TYPE = "application/json"
YAML_TYPE = "application/yaml"


class NotAcceptable(ApiError):
    """No media type that the client accepts can be answered with."""

    code = 406
    reason = "NotAcceptable"


class UnsupportedMediaType(ApiError):
    """The body is of a media type that cannot be read."""

    code = 415
    reason = "UnsupportedMediaType"


class RequestEntityTooLarge(ApiError):
    """The body is longer than the limit."""

    code = 413
    reason = "RequestEntityTooLarge"


def not_acceptable() -> NotAcceptable:
    return NotAcceptable(f"only the following media types are accepted: {JSON_TYPE}")


def unsupported_media_type(accepted: tuple[str, ...]) -> UnsupportedMediaType:
    return UnsupportedMediaType(
        "the body of the request was in an unknown format - accepted media types include: "
        + ", ".join(accepted)
    )


def invalid_patch(obj: Json, problem: str) -> Invalid:
    """Gives the refusal of a patch by what it comes to."""
    text = json.dumps(obj, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    message = str(invalid("patch", text, problem))
    cause = {"reason": "FieldValueInvalid", "message": message.removeprefix("patch: "), "field": "patch"}
    return Invalid(f' "" is invalid: {message}', causes=(cause,))


def too_large(limit: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
