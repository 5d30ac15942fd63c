"""Where a kind's objects are served, and what goes into a query or a body beside them."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind


def path_of(kind: Kind[Any], namespace: str = "", name: str = "", subresource: str = "") -> str:
    """Return the path of a collection, of an object or of its subresource."""
    parts = ["apis", kind.group] if kind.group else ["api"]
    parts.append(kind.version)
    if kind.namespaced and namespace:
        parts += ["namespaces", namespace]
    parts.append(kind.plural)
    parts += [part for part in (name, subresource) if part]
    return "/" + "/".join(quote(part, safe="") for part in parts)


def selectors(labels: str, fields: str) -> dict[str, str]:
    """Return the query of both selectors, those that are there."""
    said = {"labelSelector": labels, "fieldSelector": fields}
    return {name: text for name, text in said.items() if text}


def delete_options(uid: str, resource_version: str, grace_period_s: int | None) -> Json:
    """Return the DeleteOptions that say this, empty where nothing is said."""
    options: Json = {}
    required = {"uid": uid, "resourceVersion": resource_version}
    required = {name: value for name, value in required.items() if value}
    if required:
        options["preconditions"] = required
    if grace_period_s is not None:
        options["gracePeriodSeconds"] = grace_period_s
    return options
