"""A write as admission sees it: who does what to which object."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

from kubetide.objects.base import Json

Operation = Literal["CREATE", "UPDATE", "DELETE"]
"""CONNECT stands in rules only: nothing that is served connects."""

Convert = Callable[[Json], Json]


class TypeName(NamedTuple):
    """Group, version and kind."""

    group: str
    version: str
    kind: str


class Target(NamedTuple):
    """What rules look at, apart from the version. ``namespace`` of a Namespace is its own name."""

    operation: Operation
    group: str
    plural: str
    subresource: str
    namespace: str

    @property
    def is_namespace(self) -> bool:
        """Whether it is a Namespace itself, which is not in a namespace."""
        return not self.group and self.plural == "namespaces"


class View(NamedTuple):
    """A version that the resource is served in, and the way from the stored version and back."""

    version: str
    show: Convert
    keep: Convert


class UserInfo(msgspec.Struct, frozen=True):
    """Who asks, as it stands in a review."""

    name: str
    groups: tuple[str, ...] = ()

    def as_json(self) -> Json:
        """Return an authentication.k8s.io/v1 UserInfo."""
        return (
            {"username": self.name, "groups": list(self.groups)} if self.groups else {"username": self.name}
        )


@dataclass(frozen=True, slots=True)
class Attributes:
    """One write before it is done.

    Attributes:
        views: The versions of the resource, first the one that was asked in.
        type_name: The type of the objects where it is the same in every version, as that of a
            Scale, a Binding or an Eviction; else None, and ``kind`` is their kind.
        object: What would be written, in the stored version; None for a deletion.
        old: What is there, in the stored version; None for a creation.
        namespace_labels: Those of the namespace that the object is in.
        options: What the request says besides, as CreateOptions, UpdateOptions or DeleteOptions.
        settle: Gives an object that a patch has changed as one of its type, defaults filled in; raises
            InternalError for one that cannot be read as its type.
    """

    target: Target
    name: str
    kind: str
    views: tuple[View, ...]
    type_name: TypeName | None
    object: Json | None
    old: Json | None
    user: UserInfo
    options: Json
    dry_run: bool = False
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    settle: Convert = lambda json: json

    def type_in(self, view: View) -> TypeName:
        """Return the type that the objects have in a version."""
        return self.type_name or TypeName(self.target.group, view.version, self.kind)

    def shown(self, json: Json | None, view: View) -> Json | None:
        """Return an object as a version shows it."""
        return json if json is None or self.type_name else view.show(json)

    def converted(self, json: Json, view: View) -> Json:
        """Return an object of that version in the stored one."""
        return self.settle(json if self.type_name else view.keep(json))


def labels_of(json: Json | None) -> Mapping[str, str] | None:
    """Return the labels of an object, None where there is no object."""
    if json is None:
        return None
    metadata = json.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
