"""Refusals that only an HTTP face knows, in the API server's words (apiserver v1.36, endpoints/handlers)."""

from __future__ import annotations

from kubetide.ports.errors import ApiError, BadRequest

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


def unknown_patch_type() -> UnsupportedMediaType:
    return UnsupportedMediaType("415: Unsupported Media Type")


def unrecognized(what: str, why: str, shown: str) -> BadRequest:
    """Return the error for a body that is not even an object of some type; ``shown`` is how it begins."""
    return BadRequest(f"the object provided is unrecognized (must be of type {what}): {why} ({shown})")


def too_many_operations(limit: int, got: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(
        f"Request entity too large: The allowed maximum operations in a JSON patch is {limit}, got {got}"
    )


def too_large(limit: int) -> RequestEntityTooLarge:
    return RequestEntityTooLarge(f"Request entity too large: limit is {limit}")
