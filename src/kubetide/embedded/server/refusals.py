"""Refusals that only an HTTP face knows, in the API server's words (apiserver v1.36, endpoints/handlers)."""

from __future__ import annotations

from kubetide.ports.errors import ApiError

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


def too_large(limit: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
