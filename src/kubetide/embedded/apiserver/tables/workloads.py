"""Workloads, and what scales and protects them."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.tables.column import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    Columns,
    age,
    at,
    containers_and_images,
    labels_text,
    number,
    selector_text,
    short_duration,
    since,
    whole,
    wide,
)
from kubetide.objects.base import Json
from kubetide.units.time import Instant, between, parse_rfc3339

_TEMPLATE = (wide("Containers"), wide("Images"), wide("Selector"))


def _template_cells(obj: Json) -> list[str]:
    spec = obj.get("spec") or {}
    return [*containers_and_images(spec.get("template")), selector_text(spec.get("selector"))]


def _deployment(obj: Json, now: Instant) -> list[Any]:
    status = obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        f"{number(status, 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(status, "updatedReplicas"),
        number(status, "availableReplicas"),
        age(obj, now),
        *_template_cells(obj),
    ]


def _replica_set(obj: Json, now: Instant) -> list[Any]:
    status = obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        number(obj, "spec", "replicas"),
        number(status, "replicas"),
        number(status, "readyReplicas"),
        age(obj, now),
        *_template_cells(obj),
    ]


def _stateful_set(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        age(obj, now),
        *containers_and_images(at(obj, "spec", "template")),
    ]


def _daemon_set(obj: Json, now: Instant) -> list[Any]:
    status = obj.get("status") or {}
    return [
        obj["metadata"]["name"],
        number(status, "desiredNumberScheduled"),
        number(status, "currentNumberScheduled"),
        number(status, "numberReady"),
        number(status, "updatedNumberScheduled"),
        number(status, "numberAvailable"),
        labels_text(at(obj, "spec", "template", "spec", "nodeSelector")),
        age(obj, now),
        *_template_cells(obj),
    ]


def _job(obj: Json, now: Instant) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    total, parallel = spec.get("completions"), spec.get("parallelism") or 0
    done = number(status, "succeeded")
    if total is not None:
        completions = f"{done}/{total}"
    elif parallel > 1:
        completions = f"{done}/1 of {parallel}"
    else:
        completions = f"{done}/1"
    started, ended = status.get("startTime"), status.get("completionTime")
    duration = ""
    if started:
        end = parse_rfc3339(ended) if ended else now
        duration = short_duration(between(parse_rfc3339(started), end))
    return [
        obj["metadata"]["name"],
        _job_status(obj),
        completions,
        duration,
        age(obj, now),
        *_template_cells(obj),
    ]


def _job_status(obj: Json) -> str:
    held = {c.get("type") for c in at(obj, "status", "conditions") or () if c.get("status") == "True"}
    for condition, word in (
        ("Complete", "Complete"),
        ("Failed", "Failed"),
    ):
        if condition in held:
            return word
    if at(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    for condition, word in (
        ("Suspended", "Suspended"),
        ("FailureTarget", "FailureTarget"),
        ("SuccessCriteriaMet", "SuccessCriteriaMet"),
    ):
        if condition in held:
            return word
    return "Running"


def _cron_job(obj: Json, now: Instant) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    last = status.get("lastScheduleTime")
    template = at(spec, "jobTemplate", "spec")
    return [
        obj["metadata"]["name"],
        spec.get("schedule") or "",
        spec.get("timeZone") or NONE,
        "True" if spec.get("suspend") else "False",
        len(status.get("active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_and_images(at(template, "template")),
        selector_text(at(template, "selector")),
    ]


def _hpa(obj: Json, now: Instant) -> list[Any]:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    target = spec.get("scaleTargetRef") or {}
    low = spec.get("minReplicas")
    return [
        obj["metadata"]["name"],
        f"{target.get('kind')}/{target.get('name')}",
        _targets(spec.get("metrics") or (), status.get("currentMetrics") or ()),
        str(low) if low is not None else "<unset>",
        number(spec, "maxReplicas"),
        number(status, "currentReplicas"),
        age(obj, now),
    ]


# Where a metric of a type has its source and its current value.
_SOURCES = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_SHOWN_METRICS = 2


def _targets(specs: Any, statuses: Any) -> str:
    """Return the Targets column: the first two metrics as ``cpu: 12%/80%`` or ``12/100 (avg)``."""
    texts = [
        _target(spec, statuses[index] if index < len(statuses) else {})
        for index, spec in enumerate(specs[:_SHOWN_METRICS])
    ]
    if not texts:
        return NONE
    more = len(specs) - _SHOWN_METRICS
    return ", ".join(texts) + (f" + {more} more..." if more > 0 else "")


def _target(spec: Json, status: Json) -> str:
    field = _SOURCES.get(spec.get("type", ""))
    if field is None:
        return "<unknown type>"
    source = spec.get(field) or {}
    target = source.get("target") or {}
    current = at(status, field, "current") or {}
    if spec["type"] in {"Resource", "ContainerResource"}:
        name = f"{source.get('name', '')}: "
        if target.get("averageValue") is not None:
            return f"{name}{current.get('averageValue', UNKNOWN)}/{target['averageValue']}"
        used = current.get("averageUtilization")
        average = target.get("averageUtilization")
        return f"{name}{UNKNOWN if used is None else f'{used}%'}/{'<auto>' if average is None else f'{average}%'}"
    if target.get("averageValue") is not None:
        suffix = "" if spec["type"] == "Pods" else " (avg)"
        return f"{current.get('averageValue', UNKNOWN)}/{target['averageValue']}{suffix}"
    return f"{current.get('value', UNKNOWN)}/{target.get('value', UNKNOWN)}"


def _budget(obj: Json, now: Instant) -> list[Any]:
    spec = obj.get("spec") or {}
    return [
        obj["metadata"]["name"],
        str(spec["minAvailable"]) if spec.get("minAvailable") is not None else "N/A",
        str(spec["maxUnavailable"]) if spec.get("maxUnavailable") is not None else "N/A",
        number(obj, "status", "disruptionsAllowed"),
        age(obj, now),
    ]


def _scale(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        age(obj, now),
    ]


def _priority_class(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        number(obj, "value"),
        bool(obj.get("globalDefault")),
        age(obj, now),
        obj.get("preemptionPolicy") or "PreemptLowerPriority",
    ]


def _pod_template(obj: Json, now: Instant) -> list[Any]:
    del now
    return [
        obj["metadata"]["name"],
        *containers_and_images(obj.get("template")),
        labels_text(at(obj, "template", "metadata", "labels")),
    ]


WORKLOAD_TABLES = {
    "podtemplates": Columns(
        (NAME, Column("Containers"), Column("Images"), Column("Pod Labels")), _pod_template
    ),
    "deployments.apps": Columns(
        (NAME, Column("Ready"), whole("Up-to-date"), whole("Available"), AGE, *_TEMPLATE), _deployment
    ),
    "replicasets.apps": Columns(
        (NAME, whole("Desired"), whole("Current"), whole("Ready"), AGE, *_TEMPLATE), _replica_set
    ),
    "statefulsets.apps": Columns(
        (NAME, Column("Ready"), AGE, wide("Containers"), wide("Images")), _stateful_set
    ),
    "daemonsets.apps": Columns(
        (
            NAME,
            whole("Desired"),
            whole("Current"),
            whole("Ready"),
            whole("Up-to-date"),
            whole("Available"),
            Column("Node Selector"),
            AGE,
            *_TEMPLATE,
        ),
        _daemon_set,
    ),
    "jobs.batch": Columns(
        (NAME, Column("Status"), Column("Completions"), Column("Duration"), AGE, *_TEMPLATE), _job
    ),
    "cronjobs.batch": Columns(
        (
            NAME,
            Column("Schedule"),
            Column("Timezone"),
            Column("Suspend"),
            whole("Active"),
            Column("Last Schedule"),
            AGE,
            *_TEMPLATE,
        ),
        _cron_job,
    ),
    "horizontalpodautoscalers.autoscaling": Columns(
        (
            NAME,
            Column("Reference"),
            Column("Targets"),
            Column("MinPods"),
            whole("MaxPods"),
            whole("Replicas"),
            AGE,
        ),
        _hpa,
    ),
    "scales.autoscaling": Columns((NAME, whole("Desired"), whole("Available"), AGE), _scale),
    "poddisruptionbudgets.policy": Columns(
        (NAME, Column("Min Available"), Column("Max Unavailable"), whole("Allowed Disruptions"), AGE), _budget
    ),
    "priorityclasses.scheduling.k8s.io": Columns(
        (NAME, whole("Value"), Column("Global-Default", "boolean"), AGE, Column("PreemptionPolicy")),
        _priority_class,
    ),
}
