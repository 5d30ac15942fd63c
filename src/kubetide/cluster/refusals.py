"""From an HTTP answer to the error that the port raises."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from kubetide.objects.protobuf import MAGIC, decode_object
from kubetide.ports.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

F = TypeVar("F", bound=dict[str, Any] | list[Any] | str | int)

_ERRORS: tuple[type[ApiError], ...] = (
    AlreadyExists,
    BadRequest,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    InternalError,
)

_BY_REASON: dict[str, type[ApiError]] = {
    **{error.reason: error for error in _ERRORS},
    "Gone": Expired,
    "Timeout": Unavailable,
    "ServerTimeout": Unavailable,
}

_BY_CODE: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotAllowed,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


# What a code says where the body does not: client-go v1.36, as apimachinery's generic server response.
_UNEXPLAINED: dict[int, str] = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: (
        "the server was unable to return a response in the time allotted, "
        "but may still be processing the request"
    ),
}
# Of these the body itself is the message.
_TELLING = frozenset({403, 406, 415})
_LONGEST_TEXT = 2048

UNREADABLE = (ValueError, RecursionError)
"""What decoding raises: msgspec's own errors, text that is not UTF-8, and nesting without end."""

UNEXPECTED = "UnexpectedServerResponse"
"""The reason of the cause that an error has whose answer was no Status; its message is the body."""


def error_of_body(code: int, body: bytes) -> ApiError:
    """Return the error that an answer of this code says, also where its body is no Status."""
    try:
        status = decode_object(body) if body.startswith(MAGIC) else msgspec.json.decode(body)
    except UNREADABLE:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_of_status(status, code)
    text = body[:_LONGEST_TEXT].decode("utf-8", "replace").strip()
    if code in _TELLING and text:
        message = text
    elif code in _UNEXPLAINED:
        message = _UNEXPLAINED[code]
    elif code >= 500:
        shown = json.dumps(text or "unknown", ensure_ascii=False)
        message = f"an error on the server ({shown}) has prevented the request from succeeding"
    else:
        message = f"the server responded with the status code {code} but did not return more information"
    made = _BY_CODE.get(code, InternalError)
    if made is Expired:
        return Expired(message)
    return made(message, causes=({"reason": UNEXPECTED, "message": text},))


def error_of_status(status: Any, code: int = 0) -> ApiError:
    """Return the error that a Status says; what has another form than a Status should is passed over."""
    status = _as(dict, status)
    code = code or _as(int, status.get("code")) or 500
    details = _as(dict, status.get("details"))
    made = _BY_REASON.get(_as(str, status.get("reason"))) or _BY_CODE.get(code, InternalError)
    message = _as(str, status.get("message")) or f"the server answered {code}"
    if made is Expired:
        token = _as(str, _as(dict, status.get("metadata")).get("continue"))
        return Expired(message, continue_token=token)
    pause = details.get("retryAfterSeconds")
    return made(
        message,
        causes=tuple(cause for cause in _as(list, details.get("causes")) if isinstance(cause, dict)),
        details={key: value for key, value in details.items() if key not in {"causes", "retryAfterSeconds"}},
        retry_after_s=pause if isinstance(pause, int) and pause >= 0 else None,
    )


def _as(form: type[F], value: Any) -> F:
    """Return the value if it is of that form, else an empty one."""
    return value if isinstance(value, form) else form()
