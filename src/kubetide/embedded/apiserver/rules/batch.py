"""Rules of Jobs and CronJobs. Source: Kubernetes v1.36, pkg/apis/batch/validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from kubetide.embedded.apiserver.rules.pod import validate_pod_spec
from kubetide.objects.field_errors import (
    IMMUTABLE,
    FieldError,
    check_choice,
    check_labels,
    check_not_negative,
    check_selector,
    invalid,
    required,
    unsupported,
)
from kubetide.objects.meta import LabelSelector
from kubetide.units.cron import CronError, parse_cron, zone_of
from kubetide.units.patch import same_json
from kubetide.units.selectors import Selector

if TYPE_CHECKING:
    from kubetide.objects.base import Json

_COUNTS = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
_RESTART_POLICIES = ("OnFailure", "Never")
# The name of a Job adds a dash and ten digits to that of its CronJob, and must itself be a label.
_LONGEST_CRON_JOB_NAME = 52


def validate_job(obj: Json) -> list[FieldError]:
    """Return every rule that a Job breaks."""
    spec = obj.get("spec") or {}
    errors = _job_spec(spec, "spec")
    selector = spec.get("selector")
    if selector is None:
        # The server makes it, after what a manifest is checked for, unless the author selects by hand.
        return [*errors, required("spec.selector")] if spec.get("manualSelector") else errors
    found = check_selector("spec.selector", selector)
    if found:
        return errors + found
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
    if not Selector.from_object(msgspec.convert(selector, LabelSelector)).matches(labels):
        detail = "`selector` does not match template `labels`"
        errors.append(invalid("spec.template.metadata.labels", labels, detail))
    return errors


def _job_spec(spec: Json, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for name in _COUNTS:
        errors += check_not_negative(f"{at}.{name}", spec.get(name))
    mode = spec.get("completionMode")
    errors += check_choice(f"{at}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{at}.completions", "when completion mode is Indexed"))
    template = spec.get("template") or {}
    metadata = template.get("metadata") or {}
    errors += check_labels(f"{at}.template.metadata.labels", metadata.get("labels"))
    pod = template.get("spec") or {}
    errors += validate_pod_spec(pod, f"{at}.template.spec")
    policy, field = pod.get("restartPolicy"), f"{at}.template.spec.restartPolicy"
    if policy in {None, "", "Always"}:
        errors.append(required(field, 'valid values: "OnFailure", "Never"'))
    elif policy not in _RESTART_POLICIES:
        errors.append(unsupported(field, policy, _RESTART_POLICIES))
    return errors


def validate_job_update(obj: Json, old: Json) -> list[FieldError]:
    """Return the rules that a change of a Job breaks."""
    spec, before = obj.get("spec") or {}, old.get("spec") or {}
    fixed = ["selector", "completionMode"]
    if spec.get("completionMode") != "Indexed" or spec.get("completions") != spec.get("parallelism"):
        fixed.append("completions")
    if not before.get("suspend") or (old.get("status") or {}).get("startTime"):
        fixed.append("template")
    return [
        invalid(f"spec.{name}", spec.get(name), IMMUTABLE)
        for name in sorted(fixed)
        if not same_json(spec.get(name), before.get(name))
    ]


def validate_cron_job(obj: Json) -> list[FieldError]:
    """Return every rule that a CronJob breaks."""
    spec = obj.get("spec") or {}
    errors: list[FieldError] = []
    schedule, zone = spec.get("schedule") or "", spec.get("timeZone")
    if not schedule:
        errors.append(required("spec.schedule"))
    else:
        errors += _schedule(schedule)
    errors += _zone(zone)
    for name in ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        errors += check_not_negative(f"spec.{name}", spec.get(name))
    policies = ("Allow", "Forbid", "Replace")
    errors += check_choice("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), policies, missing="")
    name = (obj.get("metadata") or {}).get("name") or ""
    if len(name) > _LONGEST_CRON_JOB_NAME:
        detail = f"must be no more than {_LONGEST_CRON_JOB_NAME} characters"
        errors.append(invalid("metadata.name", name, detail))
    return errors + _job_spec((spec.get("jobTemplate") or {}).get("spec") or {}, "spec.jobTemplate.spec")


def _schedule(schedule: str) -> list[FieldError]:
    errors = []
    try:
        parse_cron(schedule)
    except CronError as error:
        errors.append(invalid("spec.schedule", schedule, str(error)))
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        errors.append(invalid("spec.schedule", schedule, detail))
    return errors


def _zone(zone: str | None) -> list[FieldError]:
    if zone is None:
        return []
    if not zone:
        return [invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid("spec.timeZone", zone, detail)]
    try:
        zone_of(zone)
    except CronError as error:
        return [invalid("spec.timeZone", zone, str(error))]
    return []
