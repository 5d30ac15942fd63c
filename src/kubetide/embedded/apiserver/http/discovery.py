"""What is served, in both forms of discovery.

Source: API concepts v1.36, "Discovery": ``/api``, ``/apis`` and the resource lists below them, and
the aggregated ``apidiscovery.k8s.io/v2`` at the two roots.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind, version_priority

_ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
_READ_VERBS = ("get", "list")
_UPDATE_VERBS = ("get", "patch", "update")

# Of these ``kubectl get all`` shows the objects.
_CATEGORY_ALL = frozenset(
    {"pods", "deployments", "replicasets", "daemonsets", "statefulsets", "jobs", "cronjobs"}
    | {"horizontalpodautoscalers"}
)

# What a subresource answers with, where that is not the kind itself: group, version, kind.
_SUBRESOURCE_KINDS = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
}


class Entry(NamedTuple):
    """A resource or a subresource (``pods/status``) of a group and version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    answers: tuple[str, str, str] | None = None
    """Group, version and kind of the answer, where they are not the entry's own."""
    singular: str | None = None
    """The name of one; None for the kind in lower case."""
    categories: tuple[str, ...] = ()
    """Words by which clients ask for several resources at once, as in ``kubectl get all``."""


WITHOUT_OBJECTS = (
    Entry("", "v1", "bindings", "Binding", True, ("create",)),
    Entry("authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", False, ("create",)),
    Entry("authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", False, ("create",)),
    Entry("authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", False, ("create",)),
    Entry("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", False, ("create",)),
    Entry("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", False, ("create",)),
)  # fmt: skip


def entries_of(kinds: Sequence[Kind[Any]], read_only: Sequence[Kind[Any]]) -> list[Entry]:
    """Return everything that is served: groups in the order of their registration, resources by name in each."""
    found = []
    for kind in kinds:
        found.append(_entry(kind, _ALL_VERBS))
        for subresource in kind.subresources:
            answers = _SUBRESOURCE_KINDS.get(subresource)
            found.append(
                Entry(
                    kind.group,
                    kind.version,
                    f"{kind.plural}/{subresource}",
                    answers[2] if answers else kind.kind,
                    kind.namespaced,
                    ("create",) if subresource in {"binding", "eviction"} else _UPDATE_VERBS,
                    answers=answers,
                )
            )
    found += [_entry(kind, _READ_VERBS) for kind in read_only]
    found += WITHOUT_OBJECTS
    groups = list(dict.fromkeys(entry.group for entry in found))
    found.sort(key=lambda entry: (groups.index(entry.group), entry.plural.partition("/")[0]))
    return found


class Discovery:
    """The answers to discovery requests over a set of entries."""

    def __init__(self, entries: Sequence[Entry], address: str) -> None:
        self._address = address
        self._versions: dict[str, dict[str, list[Entry]]] = {}
        for entry in entries:
            self._versions.setdefault(entry.group, {}).setdefault(entry.version, []).append(entry)

    def document(self, path: str) -> Json | None:
        """Return the document at ``/api``, ``/apis`` or a group or version below; None where nothing is."""
        parts = path.strip("/").split("/")
        if parts == ["api"]:
            return {
                "kind": "APIVersions",
                "versions": ["v1"],
                "serverAddressByClientCIDRs": [
                    {"clientCIDR": "0.0.0.0/0", "serverAddress": self._address},
                ],
            }
        if parts == ["apis"]:
            groups = [self._group(name) for name in self._versions if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        if parts[0] == "apis" and len(parts) == 2 and parts[1] in self._versions:
            return {"kind": "APIGroup", "apiVersion": "v1", **self._group(parts[1])}
        if parts[0] == "api" and len(parts) == 2:
            return self._resources("", parts[1])
        if parts[0] == "apis" and len(parts) == 3:
            return self._resources(parts[1], parts[2])
        return None

    def aggregated(self, path: str) -> Json:
        """Return the APIGroupDiscoveryList of ``/api`` or ``/apis``."""
        chosen = [name for name in self._versions if bool(name) == (path.strip("/") == "apis")]
        return {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": name, "creationTimestamp": None} if name else {},
                    "versions": [
                        {
                            "version": version,
                            "resources": _aggregated(self._versions[name][version]),
                            "freshness": "Current",
                        }
                        for version in self._order(name)
                    ],
                }
                for name in chosen
            ],
        }

    def _order(self, group: str) -> list[str]:
        return sorted(self._versions[group], key=version_priority)

    def _group(self, name: str) -> Json:
        versions = [
            {"groupVersion": f"{name}/{version}", "version": version} for version in self._order(name)
        ]
        return {"name": name, "versions": versions, "preferredVersion": versions[0]}

    def _resources(self, group: str, version: str) -> Json | None:
        entries = self._versions.get(group, {}).get(version)
        if entries is None:
            return None
        return {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": f"{group}/{version}" if group else version,
            "resources": [_legacy(entry) for entry in entries],
        }


def _entry(kind: Kind[Any], verbs: tuple[str, ...]) -> Entry:
    singular: str | None = None
    categories: tuple[str, ...] = ()
    if isinstance(kind, CustomKind):
        singular, categories = kind.singular, kind.categories
    elif kind.plural in _CATEGORY_ALL and verbs is _ALL_VERBS:
        categories = ("all",)
    return Entry(
        kind.group,
        kind.version,
        kind.plural,
        kind.kind,
        kind.namespaced,
        verbs,
        kind.short_names,
        singular=singular,
        categories=categories,
    )


def _singular(entry: Entry) -> str:
    return entry.kind.lower() if entry.singular is None else entry.singular


def _legacy(entry: Entry) -> Json:
    is_resource = "/" not in entry.plural
    found: Json = {
        "name": entry.plural,
        "singularName": _singular(entry) if is_resource else "",
        "namespaced": entry.namespaced,
        "kind": entry.kind,
        "verbs": list(entry.verbs),
    }
    if entry.answers and entry.answers[0]:
        found["group"], found["version"] = entry.answers[:2]
    if entry.short_names:
        found["shortNames"] = list(entry.short_names)
    if entry.categories:
        found["categories"] = list(entry.categories)
    return found


def _aggregated(entries: Sequence[Entry]) -> list[Json]:
    found: dict[str, Json] = {}
    for entry in entries:
        plural, _, subresource = entry.plural.partition("/")
        group, version, kind = entry.answers or (entry.group, entry.version, entry.kind)
        type_of_answer = {"group": group, "version": version, "kind": kind}
        if subresource:
            # Metrics are subresources of resources that the group does not serve: these have no kind there.
            parent = found.setdefault(
                plural,
                {
                    "resource": plural,
                    "responseKind": {"group": "", "version": "", "kind": ""},
                    "scope": "Namespaced" if entry.namespaced else "Cluster",
                    "singularResource": "",
                    "verbs": [],
                },
            )
            parent.setdefault("subresources", []).append(
                {"subresource": subresource, "responseKind": type_of_answer, "verbs": list(entry.verbs)}
            )
            continue
        item: Json = {
            "resource": plural,
            "responseKind": type_of_answer,
            "scope": "Namespaced" if entry.namespaced else "Cluster",
            "singularResource": _singular(entry),
            "verbs": list(entry.verbs),
        }
        if entry.short_names:
            item["shortNames"] = list(entry.short_names)
        if entry.categories:
            item["categories"] = list(entry.categories)
        found[plural] = item
    return list(found.values())
