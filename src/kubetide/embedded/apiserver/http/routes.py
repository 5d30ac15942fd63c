"""Which resource a path names.

Source: API concepts v1.36, "Resource URIs"; apiserver request info (namespaces hold two
subresources of their own, every other word below a namespace is a resource).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kubetide.objects.kinds import PODS, Kind

_OF_NAMESPACES = frozenset({"status", "finalize"})


@dataclass(frozen=True, slots=True)
class Target:
    """What a path names; ``name`` is empty for the collection, ``namespace`` for all of them.

    The collection ``bindings`` is the subresource ``binding`` of a pod that the body will name.
    """

    kind: Kind[Any]
    namespace: str
    name: str
    subresource: str


class Routes:
    """The resources that are served, by group, version and plural name."""

    def __init__(self, kinds: Iterable[Kind[Any]]) -> None:
        self.kinds = tuple(kinds)
        self._by_path = {(kind.group, kind.version, kind.plural): kind for kind in self.kinds}

    def is_below_a_version(self, path: str) -> bool:
        """Return whether a path is one that a served API answers itself, if only with a Status that says no."""
        parts = path.strip("/").split("/")
        if parts[0] == "api":
            return len(parts) >= 2 and parts[1] == "v1"
        return parts[0] == "apis" and len(parts) >= 3 and parts[1] in {kind.group for kind in self.kinds}

    def target(self, path: str) -> Target | None:
        """Read a path below ``/api`` or ``/apis``; None where it names nothing that is served."""
        parts = path.strip("/").split("/")
        if parts[0] == "api" and len(parts) >= 3:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) >= 4:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        namespace = ""
        if rest[0] == "namespaces" and len(rest) >= 3 and rest[2] not in _OF_NAMESPACES:
            namespace, rest = rest[1], rest[2:]
        if (group, version, rest, bool(namespace)) == ("", "v1", ["bindings"], True):
            return Target(PODS, namespace, "", "binding")
        kind = self._by_path.get((group, version, rest[0]))
        if kind is None or len(rest) > 3 or (namespace and not kind.namespaced) or not all(rest):
            return None
        name = rest[1] if len(rest) > 1 else ""
        subresource = rest[2] if len(rest) > 2 else ""
        if kind.namespaced and name and not namespace:
            return None
        return Target(kind, namespace, name, subresource)
