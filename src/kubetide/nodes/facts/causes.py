"""Why a cloud refused, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kubetide.ports.cloud import InstanceError
from kubetide.ports.errors import CloudCause

CAUSES: Final[Mapping[CloudCause, str]] = {
    "OutOfCapacity": "the cloud is out of capacity",
    "Quota": "a quota of the cloud is used up",
    "Throttled": "the cloud throttles calls",
    "Permission": "a permission in the cloud is missing",
    "Other": "",
}


def with_cause(cause: CloudCause, text: str) -> str:
    """Return the text of a refusal, preceded by its cause."""
    words = CAUSES[cause]
    return ": ".join(part for part in (words, text) if part)


def cause_of(error: InstanceError | None) -> CloudCause:
    """Return why a machine could not be created; an unspecified shortage counts as one of capacity."""
    if error is None:
        return "Other"
    return "OutOfCapacity" if (error.cause, error.error_class) == ("Other", "OutOfResource") else error.cause
