"""What the conditions are decided from: all ElasticWorkloads, and the HPAs and VPAs that may be in their way."""

from __future__ import annotations

import msgspec

from kubetide.elastic.verdicts import Other, Scene
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.meta import Key

OtherKey = tuple[str, str, str]
"""Kind, namespace and name."""


class Delta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What was gathered: everything, or what changed."""

    workloads: tuple[ElasticWorkload, ...] = ()
    gone: tuple[Key, ...] = ()
    others: tuple[Other, ...] = ()
    gone_others: tuple[OtherKey, ...] = ()


class State:
    """All objects, and which of them are to be looked at."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.due: set[Key] = set()

    def apply(self, delta: Delta) -> None:
        """Take over what changed."""
        for key in delta.gone:
            self.due |= self.scene.put(key, None)
        for found in delta.workloads:
            self.due |= self.scene.put((found.metadata.namespace, found.metadata.name), found)
        for other_key in delta.gone_others:
            self.due |= self.scene.put_other(other_key, None)
        for other in delta.others:
            self.due |= self.scene.put_other(other.key, other)
        self.due &= self.scene.workloads.keys()

    def look_at_all(self) -> None:
        """Look at every object again."""
        self.due = set(self.scene.workloads)

    def dump(self) -> Delta:
        """Return everything as a full delta."""
        scene = self.scene
        return Delta(
            workloads=tuple(scene.workloads[key] for key in sorted(scene.workloads)),
            others=tuple(scene.others[key] for key in sorted(scene.others)),
        )
