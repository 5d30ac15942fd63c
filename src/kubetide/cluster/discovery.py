"""What a server serves, from either form of discovery.

Source: API concepts v1.36, "Discovery"; client-go v1.36, discovery: a server that does not know the
aggregated form (before 1.26) answers with its groups, whose resource lists are then read one by
one, and a group that fails is left out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from kubetide.cluster.refusals import UNREADABLE
from kubetide.objects.base import json_name
from kubetide.objects.kinds import Kind, as_registered
from kubetide.ports.errors import ApiError, InternalError

DISCOVERY_TYPES = (
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
    "application/json"
)
"""What is asked for at the roots: the aggregated form, else the plain one."""

_AGGREGATED = "APIGroupDiscoveryList"


class _Part(msgspec.Struct, rename=json_name, frozen=True):
    """Base of the documents: unknown members are passed over, every list may be absent."""


class _Type(_Part, frozen=True):
    kind: str = ""


class _Subresource(_Part, frozen=True):
    subresource: str = ""


class _Resource(_Part, frozen=True):
    resource: str = ""
    response_kind: _Type | None = None
    scope: str = ""
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None
    subresources: tuple[_Subresource, ...] | None = None


class _Version(_Part, frozen=True):
    version: str = ""
    resources: tuple[_Resource, ...] | None = None


class _Name(_Part, frozen=True):
    name: str = ""


class _Group(_Part, frozen=True):
    metadata: _Name = _Name()
    versions: tuple[_Version, ...] | None = None


class _PlainVersion(_Part, frozen=True):
    version: str = ""


class _PlainGroup(_Part, frozen=True):
    name: str = ""
    versions: tuple[_PlainVersion, ...] | None = None
    preferred_version: _PlainVersion = _PlainVersion()


class _Root(_Part, frozen=True):
    """What stands at ``/api`` or ``/apis``, in either form."""

    kind: str = ""
    items: tuple[_Group, ...] | None = None
    groups: tuple[_PlainGroup, ...] | None = None
    versions: tuple[str, ...] | None = None


class _PlainResource(_Part, frozen=True):
    name: str = ""
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] | None = None
    short_names: tuple[str, ...] | None = None


class _PlainResources(_Part, frozen=True):
    resources: tuple[_PlainResource, ...] | None = None


async def served_kinds(fetch: Callable[[str], Awaitable[bytes]]) -> list[Kind[Any]]:
    """Return every kind that can be listed, of each group the preferred version first.

    Args:
        fetch: Gives the answer at a path, asked for as ``DISCOVERY_TYPES``.
    Raises: the ApiError of a root, InternalError for an answer that cannot be read.
    """
    found: list[Kind[Any]] = []
    for root in ("/api", "/apis"):
        document = _decoded(await fetch(root), _Root)
        if document.kind == _AGGREGATED:
            found += _aggregated(document)
            continue
        for group, version in _plain_versions(document):
            path = f"{root}/{group}/{version}" if group else f"{root}/{version}"
            try:
                resources = _decoded(await fetch(path), _PlainResources)
            except ApiError:
                continue
            found += _plain(group, version, resources.resources or ())
    return [as_registered(kind) for kind in found]


def _aggregated(document: _Root) -> Iterator[Kind[Any]]:
    for group in document.items or ():
        for version in group.versions or ():
            for one in version.resources or ():
                if "list" not in (one.verbs or ()) or one.response_kind is None:
                    continue
                yield Kind(
                    group=group.metadata.name,
                    version=version.version,
                    kind=one.response_kind.kind,
                    plural=one.resource,
                    model=dict,
                    namespaced=one.scope == "Namespaced",
                    subresources=tuple(part.subresource for part in one.subresources or ()),
                    short_names=one.short_names or (),
                )


def _plain_versions(document: _Root) -> Iterator[tuple[str, str]]:
    """Yield group and version of each resource list, the preferred version of a group first."""
    for version in document.versions or ():
        yield "", version
    for group in document.groups or ():
        names = (group.preferred_version.version, *(one.version for one in group.versions or ()))
        for version in dict.fromkeys(name for name in names if name):
            yield group.name, version


def _plain(group: str, version: str, resources: tuple[_PlainResource, ...]) -> Iterator[Kind[Any]]:
    parts: dict[str, list[str]] = {}
    for one in resources:
        plural, slash, subresource = one.name.partition("/")
        if slash:
            parts.setdefault(plural, []).append(subresource)
    for one in resources:
        if "/" not in one.name and "list" in (one.verbs or ()):
            yield Kind(
                group=group,
                version=version,
                kind=one.kind,
                plural=one.name,
                model=dict,
                namespaced=one.namespaced,
                subresources=tuple(parts.get(one.name, ())),
                short_names=one.short_names or (),
            )


def _decoded(raw: bytes, model: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw, type=model)
    except UNREADABLE as error:
        raise InternalError(f"the server's discovery cannot be read: {error}") from error
