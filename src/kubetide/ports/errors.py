"""Errors of the ports, by what the caller should do next.

``ApiError`` is what the API server answered, as a ``metav1.Status`` says it: each subclass is one
``reason``. ``CloudError`` is what a cloud refused. Anything else that leaves a port is a bug.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from kubetide.objects.base import Json
from kubetide.units.time import Duration


class KubetideError(Exception):
    """Base of every error that kubetide raises on purpose."""


class ApiError(KubetideError):
    """The API server refused or failed a request; ``str()`` is the message of its Status."""

    code: int = 500
    reason: str = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        causes: tuple[Json, ...] = (),
        details: Json | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.causes = causes
        self.details = details
        self.retry_after_s = retry_after_s

    def status(self) -> Json:
        """Return the ``metav1.Status`` object of this error."""
        details: Json = dict(self.details or {})
        if self.causes:
            details["causes"] = list(self.causes)
        if self.retry_after_s is not None:
            details["retryAfterSeconds"] = self.retry_after_s
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        if self.reason:
            status["reason"] = self.reason
        if details:
            status["details"] = details
        return status


class BadRequest(ApiError):
    """The request cannot be understood."""

    code = 400
    reason = "BadRequest"


class Unauthorized(ApiError):
    """The identity is missing or expired."""

    code = 401
    reason = "Unauthorized"


class Forbidden(ApiError):
    """The identity may not do this."""

    code = 403
    reason = "Forbidden"


class NotFound(ApiError):
    """The object or the resource does not exist."""

    code = 404
    reason = "NotFound"


class MethodNotAllowed(ApiError):
    """The resource has no such verb."""

    code = 405
    reason = "MethodNotAllowed"


class AlreadyExists(ApiError):
    """An object of that name exists."""

    code = 409
    reason = "AlreadyExists"


class Conflict(ApiError):
    """The object has changed since it was read: read again, decide again."""

    code = 409
    reason = "Conflict"


class Expired(ApiError):
    """The resourceVersion is too old: list again.

    ``continue_token``, where there is one, goes on with a list whose parts no longer fit together.
    """

    code = 410
    reason = "Expired"

    def __init__(self, message: str, *, continue_token: str = "") -> None:
        super().__init__(message)
        self.continue_token = continue_token

    def status(self) -> Json:
        """Return the ``metav1.Status`` object of this error."""
        status = super().status()
        if self.continue_token:
            status["metadata"] = {"continue": self.continue_token}
        return status


class UnsupportedMediaType(ApiError):
    """The resource does not accept the body's type."""

    code = 415
    reason = "UnsupportedMediaType"


class Invalid(ApiError):
    """The object breaks a rule; ``causes`` name the fields."""

    code = 422
    reason = "Invalid"


class TooManyRequests(ApiError):
    """Try later; also the answer when a disruption budget forbids an eviction."""

    code = 429
    reason = "TooManyRequests"


class InternalError(ApiError):
    """The server failed."""


class Unclassified(ApiError):
    """The server refused with a reason of its own class: ``metav1.StatusReasonUnknown``."""

    reason = ""


class GatewayTimeout(ApiError):
    """The awaited result did not come in time."""

    code = 504
    reason = "Timeout"


class Unavailable(ApiError):
    """The server cannot be reached or is not ready."""

    code = 503
    reason = "ServiceUnavailable"


class Withheld(ApiError):
    """The write was not sent, on purpose: the program only advises, or may not write any more.

    The text says which. Whoever decided it must neither count it as done nor as failed.
    """

    code = 409
    reason = "Withheld"


class MetricsError(KubetideError):
    """A metrics API did not answer with samples; ``str()`` is the text that conditions quote."""


class NoSocketsError(RuntimeError, OSError):
    """A socket was asked for in virtual time: clients take it for an address that nobody can connect to."""


def is_without_sockets(error: BaseException | None) -> bool:
    """Return whether an error comes of asking for a socket in virtual time."""
    while error is not None and not isinstance(error, NoSocketsError):
        error = error.__cause__ or error.__context__
    return error is not None


class NoSeries(MetricsError):
    """A metrics API answered without a matching series."""


CloudCause = Literal["OutOfCapacity", "Quota", "Throttled", "Permission", "Other"]
"""What a cloud's refusal means to a loop: try another group, raise a limit, wait, fix the rights, or read the text."""

_CLASS_OF_CAUSE: Mapping[CloudCause, str] = {"OutOfCapacity": "OutOfResource", "Quota": "OutOfResource"}


CloudErrorType = Literal[
    "cloudProviderError",
    "apiCallError",
    "internalError",
    "transientError",
    "configurationError",
    "nodeGroupDoesNotExistError",
]
"""Upstream's types of errors."""


class CloudError(KubetideError):
    """A cloud refused a call.

    Attributes:
        error_class: Upstream's class: ``OutOfResource`` when other groups may help (stock-out, quota), else ``Other``.
        error_code: The cloud's own short code.
        error_type: Upstream's type, which is the reason of a failed increase in the series and in the group's backoff.
        cause: What the refusal means. Unless given it follows the class, and the class follows it.
        retry_after: How long the cloud asks to wait before the next call; None when it does not say.
        may_be_done: Whether the change may have been made all the same, as no answer says that it was not.
    """

    def __init__(
        self,
        message: str,
        *,
        error_class: str = "",
        error_code: str = "cloudProviderError",
        error_type: CloudErrorType = "cloudProviderError",
        cause: CloudCause | None = None,
        retry_after: Duration | None = None,
        may_be_done: bool = False,
    ) -> None:
        super().__init__(message)
        if cause is None:
            cause = "OutOfCapacity" if error_class == "OutOfResource" else "Other"
        self.error_class = error_class or _CLASS_OF_CAUSE.get(cause, "Other")
        self.error_code = error_code
        self.error_type: CloudErrorType = error_type
        self.cause: CloudCause = cause
        self.retry_after = retry_after
        self.may_be_done = may_be_done


class CloudUnsupported(CloudError):
    """The provider lacks the operation; upstream's ErrNotImplemented."""

    def __init__(self, message: str, *, error_code: str = "notImplemented") -> None:
        super().__init__(message, error_code=error_code)


class CloudWithheld(CloudError):
    """The call was not made, on purpose; like ``Withheld`` for the API server."""
