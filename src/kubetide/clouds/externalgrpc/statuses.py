"""What the statuses of gRPC mean."""

from __future__ import annotations

from typing import Final

from kubetide.ports.errors import CloudCause, CloudError, CloudUnsupported

_CAUSES: Final[dict[str, CloudCause]] = {
    "RESOURCE_EXHAUSTED": "Quota",
    "PERMISSION_DENIED": "Permission",
    "UNAUTHENTICATED": "Permission",
}

_NO_ANSWER: Final = frozenset({"DEADLINE_EXCEEDED", "UNAVAILABLE"})
"""The call may have reached the server all the same."""


def code_name(status: str) -> str:
    """Return the name that upstream prints for a status: ``DEADLINE_EXCEEDED`` becomes ``DeadlineExceeded``."""
    return "".join(part.capitalize() for part in status.split("_"))


def error_of(method: str, status: str, details: str) -> CloudError:
    """Return the error of a call that ended with a status other than OK."""
    text = f"{method}: {code_name(status)}: {details}"
    if status == "UNIMPLEMENTED":
        return CloudUnsupported(text, error_code=code_name(status))
    cause, unsure = _CAUSES.get(status, "Other"), status in _NO_ANSWER
    return CloudError(text, error_code=code_name(status), cause=cause, may_be_done=unsure)


_STATUSES: Final[dict[CloudCause, str]] = {
    "OutOfCapacity": "RESOURCE_EXHAUSTED",
    "Quota": "RESOURCE_EXHAUSTED",
    "Throttled": "UNAVAILABLE",
    "Permission": "PERMISSION_DENIED",
    "Other": "FAILED_PRECONDITION",
}


def status_of(error: CloudError) -> str:
    """Return the gRPC status for a cloud's refusal."""
    return "UNIMPLEMENTED" if isinstance(error, CloudUnsupported) else _STATUSES[error.cause]
