"""The metadata that the server sets: names, uids, times, generations.

Source: apiserver v1.36, registry/rest (create, update) and the strategies of the kinds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.errors import conflict, invalid, not_registered, version_required
from kubetide.objects import field_errors
from kubetide.objects.base import Json
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, HPAS_V1, STORED_KINDS, Kind
from kubetide.ports.errors import BadRequest, Unclassified
from kubetide.units.seeds import name_suffix, uuid_of

# What an update never takes from the body.
_OWNED_BY_SERVER = ("name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp")
_ALSO_OWNED = ("deletionGracePeriodSeconds", "selfLink", "resourceVersion")

# ConfigMaps, Events, Leases, Namespaces, Nodes and HPAs carry no generation.
_WITH_GENERATION = frozenset(
    {
        "pods",
        "podtemplates",
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
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)

_LONGEST_PREFIX = 58  # 63 less the five characters of the suffix


class Identities:
    """Draws names and uids from a seed, each by what it is for, so that one object more moves no other.

    A name that is used again, and a prefix that is generated from again, count up; the counts are
    all that is stored. Events are too many to count: the version of the write makes them unique.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._births: dict[tuple[str, str, str], int] = {}
        self._generated: dict[tuple[str, str, str], int] = {}

    def next_name(self, kind: Kind[Any], namespace: str, prefix: str) -> str:
        """Return the next generated name for the prefix."""
        place = (kind.resource, namespace, prefix)
        count = self._generated[place] = self._generated.get(place, 0) + 1
        return prefix[:_LONGEST_PREFIX] + name_suffix(self._seed, "name", *place, count)

    def next_uid(self, kind: Kind[Any], namespace: str, name: str, version: int, prefix: str = "") -> str:
        """Return the uid of an object about to be created; ``prefix`` is what its name was generated from."""
        if kind.resource == "events":
            count = version
        elif prefix:
            count = self._generated[kind.resource, namespace, prefix]
        else:
            place = (kind.resource, namespace, name)
            count = self._births[place] = self._births.get(place, 0) + 1
        return uuid_of(self._seed, "uid", kind.resource, namespace, name, prefix, count)


def sent_in(kind: Kind[Any], body: Any) -> Json:
    """Return the metadata of a body or a merge patch, empty where it has none. Raises BadRequest."""
    metadata = body.get("metadata") if isinstance(body, dict) else body
    if metadata is None and isinstance(body, dict):
        return {}
    if not isinstance(metadata, dict):
        raise BadRequest(f"the body of a {kind.kind} is an object, and so is its metadata")
    return metadata


def check_type(kind: Kind[Any], body: Any) -> None:
    """Raise BadRequest when the body says that it is of another type."""
    name = sent_in(kind, body).get("name") or ""
    version, said = body.get("apiVersion") or kind.api_version, body.get("kind") or kind.kind
    if not (isinstance(version, str) and isinstance(said, str)):
        raise BadRequest(f"the apiVersion and the kind of a {kind.kind} are texts")
    if isinstance(kind, CustomKind):
        if said != kind.kind:
            fault = field_errors.invalid("kind", said, f"must be {kind.kind}")
            raise invalid(replace(kind, kind=said), name, [fault])
        if version != kind.api_version:
            raise BadRequest(
                f"the API version in the data ({version}) does not match the expected API version "
                f"({kind.api_version})"
            )
    elif (version, said) != (kind.api_version, kind.kind):
        short = version.rpartition("/")[2]
        raise BadRequest(
            f'{said} in version "{short}" cannot be handled as a {kind.kind}: {other_type(kind, version, said)}'
        )


def other_type(kind: Kind[Any], version: str, said: str) -> str:
    """Return upstream's words about an object of type ``said`` where one of ``kind`` is expected."""
    if (version, said) not in _known_types():
        return not_registered(said, version)
    own = kind.group.partition(".")[0] or "core"
    return f"converting ({version.rpartition('/')[2]}.{said}) to ({own}.{kind.kind}): unknown conversion"


@cache
def _known_types() -> frozenset[tuple[str, str]]:
    kinds = (*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS, HPAS_V1)
    return frozenset((kind.api_version, kind.kind) for kind in kinds)


def namespace_of(kind: Kind[Any], body: Json, namespace: str) -> str:
    """Return the namespace of an object sent to ``namespace``. Raises BadRequest when they differ or both are empty."""
    if not kind.namespaced:
        return ""
    said = (body.get("metadata") or {}).get("namespace") or ""
    if said and namespace and said != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not (said or namespace):
        raise BadRequest(f"an empty namespace may not be set during creation of a {kind.kind}")
    return said or namespace


def _has_generation(kind: Kind[Any]) -> bool:
    return kind.resource in _WITH_GENERATION or isinstance(kind, CustomKind)


def for_review(sent: Json, namespace: str) -> Json:
    """Return the metadata of a new object before the server has set its own fields."""
    own = {*_OWNED_BY_SERVER, *_ALSO_OWNED} - {"name"}
    meta = {key: value for key, value in sent.items() if value is not None and key not in own}
    if namespace:
        meta["namespace"] = namespace
    return meta


def for_create(kind: Kind[Any], sent: Json, *, namespace: str, name: str, uid: str, now: str) -> Json:
    """Return the metadata of a new object from what was sent."""
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
    """Return the metadata of an updated object: what the server owns stays."""
    meta = {key: value for key, value in sent.items() if value is not None}
    for field in (*_OWNED_BY_SERVER, *_ALSO_OWNED):
        if field in old:
            meta[field] = old[field]
        else:
            meta.pop(field, None)
    return meta


def _of_generation(kind: Kind[Any], obj: Json) -> Any:
    """Return what counts as a change when it differs.

    That is the spec, or the webhooks of a configuration; of a custom kind all but metadata and status.
    """
    if isinstance(kind, CustomKind):
        apart = {"metadata", "status"} if kind.has_status else {"metadata"}
        return {key: value for key, value in obj.items() if key not in apart}
    if kind.resource == "podtemplates":
        return obj.get("template")
    return obj.get("webhooks") if kind.group == "admissionregistration.k8s.io" else obj.get("spec")


def with_generation(kind: Kind[Any], new: Json, old: Json) -> Json:
    """Return the new object with its generation counted up when the spec differs from the old one."""
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
        "resourceslices.resource.k8s.io",
        "deviceclasses.resource.k8s.io",
    }
)


def check_preconditions(kind: Kind[Any], sent: Json, old: Json, *, whole: bool, scale: bool = False) -> None:
    """Raise when an update may not apply to this object.

    Args:
        kind: The object's kind.
        sent: The metadata of the body or of the merge patch.
        old: The metadata of the stored object.
        whole: The body is the whole object (PUT), not a patch.
        scale: The body is a Scale of the object.

    Raises:
        Conflict: It names another version or another uid.
        Invalid: It names no version and the kind requires one.
        BadRequest: It names another object.
    """
    if not sent and not whole:
        return
    name = old["name"]
    if whole and not sent.get("name"):
        raise BadRequest(
            f"the name of the object ({name} based on URL) was undeterminable: name must be provided"
        )
    if sent.get("name") and sent["name"] != name:
        raise BadRequest(
            f"the name of the object ({sent['name']}) does not match the name on the URL ({name})"
        )
    if sent.get("namespace") and sent["namespace"] != old.get("namespace", ""):
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    uid = sent.get("uid")
    if uid and uid != old["uid"]:
        if not whole:
            fault = field_errors.invalid("metadata.uid", uid, field_errors.IMMUTABLE)
            raise invalid(kind, name, [fault, fault])  # upstream looks at it twice
        place = "/".join(part for part in (kind.plural, old.get("namespace", ""), name) if part)
        raise conflict(
            kind,
            name,
            f"StorageError: invalid object, Code: 4, Key: /registry/{place}, ResourceVersion: 0, "
            f"AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
            f"UID in object meta: {old['uid']}",
        )
    version = sent.get("resourceVersion")
    if version and version != "0":
        if not isinstance(version, str):
            raise BadRequest(f"the resourceVersion of a {kind.kind} is a text")
        if not (version.isascii() and version.isdecimal()):
            raise Unclassified(f'strconv.ParseUint: parsing "{version}": invalid syntax')
        if version != old["resourceVersion"]:
            raise conflict(kind, name)
    elif whole and not scale and (kind.resource in _VERSION_REQUIRED or isinstance(kind, CustomKind)):
        raise version_required(kind, name)
