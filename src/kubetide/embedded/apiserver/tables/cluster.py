"""Nodes, namespaces, events and the small kinds."""

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
    since,
    whole,
    wide,
)
from kubetide.objects.base import Json
from kubetide.units.time import Instant

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE = "kubernetes.io/role"


def _node(obj: Json, now: Instant) -> list[Any]:
    status = obj.get("status") or {}
    info = status.get("nodeInfo") or {}
    ready = next((c for c in status.get("conditions") or () if c.get("type") == "Ready"), None)
    words = ["Unknown"] if ready is None else ["Ready" if ready.get("status") == "True" else "NotReady"]
    if at(obj, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    addresses: dict[str, str] = {}
    for address in status.get("addresses") or ():
        addresses.setdefault(address.get("type", ""), address.get("address", ""))
    return [
        obj["metadata"]["name"],
        ",".join(words),
        ",".join(_roles(at(obj, "metadata", "labels") or {})) or NONE,
        age(obj, now),
        info.get("kubeletVersion") or "",
        addresses.get("InternalIP") or NONE,
        addresses.get("ExternalIP") or NONE,
        info.get("osImage") or UNKNOWN,
        _kernel(info),
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _kernel(info: Json) -> str:
    kernel, architecture = info.get("kernelVersion") or UNKNOWN, info.get("architecture")
    return f"{kernel} ({architecture})" if architecture else kernel


def _roles(labels: Json) -> list[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    if labels.get(_ROLE):
        roles.add(labels[_ROLE])
    return sorted(role for role in roles if role)


def _namespace(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], at(obj, "status", "phase") or "", age(obj, now)]


def _config_map(obj: Json, now: Instant) -> list[Any]:
    return [
        obj["metadata"]["name"],
        len(obj.get("data") or {}) + len(obj.get("binaryData") or {}),
        age(obj, now),
    ]


def _lease(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], at(obj, "spec", "holderIdentity") or "", age(obj, now)]


def _webhooks(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], len(obj.get("webhooks") or ()), age(obj, now)]


def _definition(obj: Json, _now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], at(obj, "metadata", "creationTimestamp") or ""]


def _event(obj: Json, now: Instant) -> list[Any]:
    series = obj.get("series") or {}
    first = obj.get("firstTimestamp") or obj.get("eventTime")
    last = series.get("lastObservedTime") or obj.get("lastTimestamp") or first
    involved = obj.get("involvedObject") or {}
    component = at(obj, "source", "component") or obj.get("reportingComponent") or ""
    host = at(obj, "source", "host") or ""
    target = str(involved.get("kind", "")).lower()
    if involved.get("name"):
        target = f"{target}/{involved['name']}"
    return [
        since(last, now),
        obj.get("type") or "",
        obj.get("reason") or "",
        target,
        involved.get("fieldPath") or "",
        f"{component}, {host}" if host else component,
        str(obj.get("message") or "").strip(),
        since(first, now),
        series.get("count") or obj.get("count") or 1,
        obj["metadata"]["name"],
    ]


CLUSTER_TABLES = {
    "nodes": Columns(
        (
            NAME,
            Column("Status"),
            Column("Roles"),
            AGE,
            Column("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ),
        _node,
    ),
    "namespaces": Columns((NAME, Column("Status"), AGE), _namespace),
    "configmaps": Columns((NAME, whole("Data"), AGE), _config_map),
    "customresourcedefinitions.apiextensions.k8s.io": Columns(
        (NAME, Column("Created At", "date")), _definition
    ),
    "leases.coordination.k8s.io": Columns((NAME, Column("Holder"), AGE), _lease),
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": Columns(
        (NAME, whole("Webhooks"), AGE), _webhooks
    ),
    "validatingwebhookconfigurations.admissionregistration.k8s.io": Columns(
        (NAME, whole("Webhooks"), AGE), _webhooks
    ),
    "events": Columns(
        (
            Column("Last Seen"),
            Column("Type"),
            Column("Reason"),
            Column("Object"),
            wide("Subobject"),
            wide("Source"),
            Column("Message"),
            wide("First Seen"),
            Column("Count", "integer", priority=1),
            Column("Name", format="name", priority=1),
        ),
        _event,
    ),
}
