"""The metadata that the server sets: names, uids, times, generations.

Source: apiserver v1.36, registry/rest (create, update) and the strategies of the kinds.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.store.custom import CustomKind
from kubetide.embedded.store.errors import conflict
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import BadRequest, Invalid
from kubetide.units.seeds import name_suffix, uuid_of

# What an update never takes from the body.
_OWNED_BY_SERVER = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
_ALSO_OWNED = ("deletionGracePeriodSeconds", "selfLink", "resourceVersion")

# ConfigMaps, Events, Leases, Namespaces, Nodes and HPAs carry no generation.
_WITH_GENERATION = frozenset(
    {
        "pods",
        "deployments.apps",
        "replicasets.apps",
        "daemonsets.apps",
        "statefulsets.apps",
        "jobs.batch",
        "cronjobs.batch",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)

_LONGEST_PREFIX = 58  # 63 less the five characters of the suffix


class Identities:
    """Draws names and uids from a seed, each by what it is for, so that one object more moves no other.

    A name that is used again, and a prefix that is generated from again, count up; the counts are
    all that is kept. Events are too many to count: the version of the write tells them apart.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._births: dict[tuple[str, str, str], int] = {}
        self._generated: dict[tuple[str, str, str], int] = {}

    def next_name(self, kind: Kind[Any], namespace: str, prefix: str) -> str:
        """Gives the next generated name for the prefix."""
        place = (kind.resource, namespace, prefix)
        count = self._generated[place] = self._generated.get(place, 0) + 1
        return prefix[:_LONGEST_PREFIX] + name_suffix(self._seed, "name", *place, count)

    def next_uid(self, kind: Kind[Any], namespace: str, name: str, version: int, prefix: str = "") -> str:
        """Gives the uid of an object about to be created; ``prefix`` is what its name was generated from."""
        if kind.resource == "events":
            count = version
        elif prefix:
            count = self._generated[kind.resource, namespace, prefix]
        else:
            place = (kind.resource, namespace, name)
            count = self._births[place] = self._births.get(place, 0) + 1
        return uuid_of(self._seed, "uid", kind.resource, namespace, name, prefix, count)


def sent_in(kind: Kind[Any], body: Any) -> Json:
    """Gives the metadata of a body or a merge patch, empty where it has none. Raises BadRequest."""
    metadata = body.get("metadata") if isinstance(body, dict) else body
    if metadata is None and isinstance(body, dict):
        return {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"the body of a {kind.kind} is an object, and so is its metadata")
    return metadata


def check_type(kind: Kind[Any], body: Any) -> None:
    """Raises BadRequest when the body says that it is of another type."""
    sent_in(kind, body)
    for field, expected in (("apiVersion", kind.api_version), ("kind", kind.kind)):
        said = body.get(field)
        if said and said != expected:
            raise BadRequest(
                f"the {field} in the data ({said}) does not match the expected {field} ({expected})"
            )


def namespace_of(kind: Kind[Any], body: Json, namespace: str) -> str:
    """Gives the namespace of an object sent to ``namespace``. Raises BadRequest when they differ or both are empty."""
    if not kind.namespaced:
        return ""
    said = (body.get("metadata") or {}).get("namespace") or ""
    if said and namespace and said != namespace:
        raise BadRequest(
            f"the namespace of the provided object does not match the namespace sent on the request: {said}, {namespace}"
        )
    if not (said or namespace):
        raise BadRequest(f"an empty namespace may not be set during creation of a {kind.kind}")
    return said or namespace


def _has_generation(kind: Kind[Any]) -> bool:
    return kind.resource in _WITH_GENERATION or isinstance(kind, CustomKind)


def for_create(kind: Kind[Any], sent: Json, *, namespace: str, name: str, uid: str, now: str) -> Json:
    """Gives the metadata of a new object from what was sent."""
    meta = {key: value for key, value in sent.items() if value is not None}
    for field in (*_OWNED_BY_SERVER, *_ALSO_OWNED):
        meta.pop(field, None)
    meta["name"] = name
    if namespace:
        meta["namespace"] = namespace
    meta["uid"] = uid
    if _has_generation(kind):
        meta["generation"] = 1
    meta["creationTimestamp"] = now
    return meta


def for_update(sent: Json, old: Json) -> Json:
    """Gives the metadata of an updated object: what the server owns stays."""
    meta = {key: value for key, value in sent.items() if value is not None}
    for field in (*_OWNED_BY_SERVER, *_ALSO_OWNED):
        if field in old:
            meta[field] = old[field]
        else:
            meta.pop(field, None)
    return meta


def _of_generation(kind: Kind[Any], obj: Json) -> Any:
    """Gives what counts as a change when it differs.

    That is the spec, or the webhooks of a configuration; of a custom kind all but metadata and status.
    """
    if isinstance(kind, CustomKind):
        apart = {"metadata", "status"} if kind.has_status else {"metadata"}
        return {key: value for key, value in obj.items() if key not in apart}
    return obj.get("webhooks") if kind.group == "admissionregistration.k8s.io" else obj.get("spec")


def with_generation(kind: Kind[Any], new: Json, old: Json) -> Json:
    """Gives the new object with its generation counted up when the spec differs from the old one."""
    if not _has_generation(kind) or _of_generation(kind, new) == _of_generation(kind, old):
        return new
    return {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 0) + 1}}


# These strategies refuse an update that names no version.
_VERSION_REQUIRED = frozenset(
    {
        "leases.coordination.k8s.io",
        "poddisruptionbudgets.policy",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
    }
)


def check_preconditions(kind: Kind[Any], sent: Json, old: Json, *, whole: bool) -> None:
    """Raises when an update may not apply to this object.

    Args:
        kind: The object's kind.
        sent: The metadata of the body or of the merge patch.
        old: The metadata of the stored object.
        whole: The body is the whole object (PUT), not a patch.

    Raises:
        Conflict: It names another version or another uid.
        Invalid: It names no version and the kind requires one.
        BadRequest: It names another object.
    """
    name = old["name"]
    for field in ("name", "namespace"):
        if sent.get(field) and sent[field] != old.get(field, ""):
            raise BadRequest(
                f"the {field} of the object ({sent[field]}) does not match the {field} on the URL ({old.get(field, '')})"
            )
    uid = sent.get("uid")
    if uid and uid != old["uid"]:
        raise conflict(
            kind, name, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {old['uid']}"
        )
    version = sent.get("resourceVersion")
    if version and version != "0":
        if version != old["resourceVersion"]:
            raise conflict(kind, name)
    elif whole and kind.resource in _VERSION_REQUIRED:
        text = "Invalid value: 0: must be specified for an update"
        field = "metadata.resourceVersion"
        raise Invalid(
            f'{kind.kind}.{kind.group} "{name}" is invalid: {field}: {text}',
            causes=({"reason": "FieldValueInvalid", "message": text, "field": field},),
        )
