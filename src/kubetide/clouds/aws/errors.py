"""What errors of AWS mean: codes of its APIs and of scaling activities.

Source: Amazon EC2 API reference, error codes; EC2 Auto Scaling user guide, troubleshooting of launches.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kubetide.clouds.aws.api import SERVICES
from kubetide.ports.errors import CloudCause, CloudError

NO_CREDENTIALS: Final = "NoCredentialsError"
"""The code of a call that was not made, as there are no credentials to sign it."""

_CAUSES: Final[dict[str, CloudCause]] = {
    "InsufficientInstanceCapacity": "OutOfCapacity",
    "InsufficientHostCapacity": "OutOfCapacity",
    "InsufficientReservedInstanceCapacity": "OutOfCapacity",
    "InsufficientCapacity": "OutOfCapacity",
    "ReservationCapacityExceeded": "OutOfCapacity",
    "UnfulfillableCapacity": "OutOfCapacity",
    "SpotMaxPriceTooLow": "OutOfCapacity",
    "Unsupported": "OutOfCapacity",
    "VcpuLimitExceeded": "Quota",
    "InstanceLimitExceeded": "Quota",
    "MaxSpotInstanceCountExceeded": "Quota",
    "VolumeLimitExceeded": "Quota",
    "InsufficientFreeAddressesInSubnet": "Quota",
    "LimitExceeded": "Quota",
    "Throttling": "Throttled",
    "ThrottlingException": "Throttled",
    "ThrottledException": "Throttled",
    "RequestThrottled": "Throttled",
    "RequestThrottledException": "Throttled",
    "TooManyRequestsException": "Throttled",
    "RequestLimitExceeded": "Throttled",
    "ResourceContention": "Throttled",
    "SlowDown": "Throttled",
    "AccessDenied": "Permission",
    "AccessDeniedException": "Permission",
    "UnauthorizedOperation": "Permission",
    "AuthFailure": "Permission",
    "ExpiredToken": "Permission",
    "ExpiredTokenException": "Permission",
    "InvalidClientTokenId": "Permission",
    "UnrecognizedClientException": "Permission",
    "SignatureDoesNotMatch": "Permission",
    "OptInRequired": "Permission",
    "InvalidIdentityToken": "Permission",
    "IDPRejectedClaim": "Permission",
    NO_CREDENTIALS: "Permission",
}

# What activities say in words where they name no code.
_PHRASES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.IGNORECASE), code)
    for pattern, code in (
        (r"do(es)? not have sufficient .* capacity", "InsufficientInstanceCapacity"),
        (r"no spot capacity available", "UnfulfillableCapacity"),
        (r"could not launch (on-demand|spot) instances", "UnfulfillableCapacity"),
        (r"is not supported in your requested availability zone", "Unsupported"),
        (r"lower than the minimum required spot request fulfillment price", "SpotMaxPriceTooLow"),
        (r"more vcpu capacity than your current vcpu limit", "VcpuLimitExceeded"),
        (r"max spot instance count exceeded", "MaxSpotInstanceCountExceeded"),
        (r"instance limit|instance\(s\) are already running", "InstanceLimitExceeded"),
        (r"insufficient free addresses|not enough free addresses", "InsufficientFreeAddressesInSubnet"),
        (r"not authorized to perform|access denied|authentication failure", "AccessDenied"),
        (r"rate exceeded|request limit exceeded", "RequestLimitExceeded"),
    )
)
_CODE: Final = re.compile(r"\b[A-Z][A-Za-z]+(?:\.[A-Z][A-Za-z]+)?\b")


class Cause(NamedTuple):
    """The code of a failure, and what it means."""

    code: str
    cause: CloudCause


def cause_of_code(code: str) -> CloudCause:
    """Return what an error code of the API means."""
    head = code.split(".", maxsplit=1)[0]
    return _CAUSES.get(code) or _CAUSES.get(head, "Other")


def cause_of_message(message: str) -> Cause | None:
    """Return the code that the text of a failed activity names or describes; None for one that is not known."""
    for word in _CODE.findall(message):
        if cause_of_code(word) != "Other":
            return Cause(word, cause_of_code(word))
    for pattern, code in _PHRASES:
        if pattern.search(message):
            return Cause(code, cause_of_code(code))
    return None


def api_error(operation: str, code: str, message: str) -> CloudError:
    """Return the error of a call that AWS refused; the call may be one that the SDK makes to get credentials."""
    cause = cause_of_code(code)
    text = f"{operation}: {code}: {message}"
    if code == NO_CREDENTIALS:
        text += "; give this program a role (IRSA, pod identity, instance role), or keys in its environment"
    elif cause == "Permission" and operation in SERVICES:
        text += (
            f"; allow {SERVICES[operation]}:{operation} to the role of this program, or renew its credentials"
        )
    elif cause == "Permission":
        text += "; let the trust policy of this program's role name its service account or identity"
    return CloudError(text, error_code=code, cause=cause)
