"""From an HTTP answer to the error that the port raises."""

from __future__ import annotations

from typing import Any

import msgspec

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


def error_of_body(code: int, body: bytes) -> ApiError:
    """Gives the error that an answer of this code says, also where its body is no Status."""
    try:
        status = msgspec.json.decode(body)
    except msgspec.DecodeError:
        status = None
    if isinstance(status, dict) and status.get("kind") == "Status":
        return error_of_status(status, code)
    if code == 404:
        return NotFound("the server could not find the requested resource")
    text = body[:200].decode("utf-8", "replace").strip()
    return _BY_CODE.get(code, InternalError)(f"the server answered {code}: {text}")


def error_of_status(status: dict[str, Any], code: int = 0) -> ApiError:
    """Gives the error that a Status says."""
    code = code or status.get("code") or 500
    details = status.get("details") or {}
    made = _BY_REASON.get(status.get("reason") or "") or _BY_CODE.get(code, InternalError)
    if made is Expired:
        token = (status.get("metadata") or {}).get("continue") or ""
        return Expired(status.get("message") or f"the server answered {code}", continue_token=token)
    return made(
        status.get("message") or f"the server answered {code}",
        causes=tuple(details.get("causes") or ()),
        details={key: value for key, value in details.items() if key not in {"causes", "retryAfterSeconds"}},
        retry_after_s=details.get("retryAfterSeconds"),
    )
