"""Instances of a managed group: their states, and why one could not be made.

The classification is a table of phrases (``error_phrases.csv``): order, where to look, what to find,
class and code. Source: cluster-autoscaler cloudprovider/gce, error codes of managed instances.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from kubetide.clouds.common.pagination import each_once
from kubetide.clouds.gce.references import GceRef, parse_instance_url, parse_manager_url, provider_id
from kubetide.clouds.gce.template import Metadata
from kubetide.objects.base import ApiStruct
from kubetide.ports.cloud import Instance, InstanceError, InstanceState
from kubetide.ports.errors import CloudCause, CloudError

_CREATING = {"CREATING", "RECREATING", "CREATING_WITHOUT_RETRIES"}
_DELETING = {"DELETING", "ABANDONING"}
_LISTED: dict[str, InstanceState] = {
    "PROVISIONING": "Creating",
    "STAGING": "Creating",
    "STOPPING": "Deleting",
    "TERMINATED": "Deleting",
}
_NOT_UP = {"", "PROVISIONING", "STAGING"}


class AttemptError(ApiStruct):
    code: str = ""
    message: str = ""


class AttemptErrors(ApiStruct):
    errors: tuple[AttemptError, ...] | None = None


class LastAttempt(ApiStruct):
    errors: AttemptErrors | None = None


class ManagedInstance(ApiStruct):
    """The API's ManagedInstance, as ``listManagedInstances`` answers it."""

    instance: str = ""
    instance_status: str = ""
    current_action: str = ""
    last_attempt: LastAttempt | None = None


class ListedInstance(ApiStruct):
    """The API's Instance, as ``instances.list`` answers it."""

    self_link: str = ""
    status: str = ""
    metadata: Metadata | None = None


class _Phrase(NamedTuple):
    code: re.Pattern[str] | None
    message: re.Pattern[str] | None
    error_class: str
    error_code: str


@cache
def _phrases() -> tuple[_Phrase, ...]:
    text = (files(__package__) / "error_phrases.csv").read_text(encoding="utf-8")
    return tuple(
        _Phrase(
            re.compile(row["code"]) if row["code"] else None,
            re.compile(row["message"]) if row["message"] else None,
            row["class"],
            row["error_code"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def classify(
    code: str, message: str, instance_status: str, previous: InstanceError | None
) -> InstanceError | None:
    """Return what one error of a creation means; None where it means nothing for an instance that is up.

    Args:
        code: The API's error code.
        message: Its text.
        instance_status: The instance's own status; empty while there is none.
        previous: What an earlier error of the same attempt meant; it stands where this one says nothing.
    """
    for phrase in _phrases():
        if phrase.code is not None and not phrase.code.search(code):
            continue
        if phrase.message is not None and not phrase.message.search(message):
            continue
        return InstanceError(
            error_class=phrase.error_class,
            error_code=phrase.error_code,
            cause=_cause(phrase.error_code),
        )
    if instance_status in _NOT_UP:
        return previous or InstanceError(error_class="Other", error_code="OTHER")
    return None


def _cause(error_code: str) -> CloudCause:
    if error_code == "QUOTA_EXCEEDED":
        return "Quota"
    if error_code in {"RESOURCE_POOL_EXHAUSTED", "INSUFFICIENT_CAPACITY"}:
        return "OutOfCapacity"
    return "Permission" if error_code == "PERMISSIONS_ERROR" else "Other"


def _error_of(one: ManagedInstance) -> InstanceError | None:
    errors = (one.last_attempt.errors.errors if one.last_attempt and one.last_attempt.errors else None) or ()
    found: InstanceError | None = None
    messages: list[str] = []
    for error in errors:
        meant = classify(error.code, error.message, one.instance_status, found)
        if meant is not None:
            found = meant
            messages.append(error.message)
    if found is None:
        return None
    return InstanceError(
        error_class=found.error_class,
        error_code=found.error_code,
        error_message="; ".join(text for text in messages if text),
        cause=found.cause,
    )


def managed_instances(listed: Sequence[ManagedInstance]) -> tuple[Instance, ...]:
    """Return the instances of a group, each once, ordered by provider id; those whose URL is none are left out."""
    found: list[Instance] = []
    for one in listed:
        try:
            ref = parse_instance_url(one.instance)
        except CloudError:
            continue
        state: InstanceState = "Running"
        if one.current_action in _CREATING:
            state = "Creating"
        elif one.current_action in _DELETING:
            state = "Deleting"
        error = _error_of(one) if state == "Creating" else None
        found.append(Instance(provider_id=provider_id(ref), state=state, error=error))
    return tuple(sorted(each_once(found, lambda one: one.provider_id), key=lambda one: one.provider_id))


def listed_instance(one: ListedInstance) -> tuple[Instance, GceRef]:
    """Return an instance of a zone's list and the group that made it. Raises CloudError.

    The group is empty for an instance that no managed group made.
    """
    ref = parse_instance_url(one.self_link)
    maker = (one.metadata.value("created-by") if one.metadata else None) or ""
    group = parse_manager_url(maker, ref.project)
    return Instance(provider_id=provider_id(ref), state=_LISTED.get(one.status, "Running")), group


def instances_by_group(listed: Iterable[ListedInstance]) -> dict[GceRef, list[Instance]]:
    """Return the instances of a zone's list by the groups that made them; those whose URL is none are left out."""
    found: dict[GceRef, list[Instance]] = {}
    for one in listed:
        with suppress(CloudError):
            instance, maker = listed_instance(one)
            found.setdefault(maker, []).append(instance)
    return {maker: each_once(made, lambda one: one.provider_id) for maker, made in found.items()}
