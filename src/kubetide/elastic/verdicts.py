"""Which ElasticWorkloads are followed: those that are valid, and whose target no other object scales."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

import msgspec

from kubetide.elastic.sections import TargetKey, problems_of, target_key
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import HPAS, VPAS
from kubetide.objects.meta import Key
from kubetide.objects.vpa import VerticalPodAutoscaler

INVALID: Final = "InvalidSpec"
CONFLICT: Final = "Conflict"


class Other(msgspec.Struct, frozen=True, order=True):
    """An HPA or a VPA, as far as it can be in the way."""

    kind: str
    namespace: str
    name: str
    target: TargetKey

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        return self.kind, self.namespace, self.name


def other_hpa(found: HorizontalPodAutoscaler) -> Other:
    """Return an HPA as far as it can be in the way."""
    meta = found.metadata
    return Other(
        HPAS.kind, meta.namespace, meta.name, target_key(meta.namespace, found.spec.scale_target_ref)
    )


def other_vpa(found: VerticalPodAutoscaler) -> Other:
    """Return a VPA as far as it can be in the way."""
    meta, ref = found.metadata, found.spec.target_ref
    target = ("", "", meta.namespace, "") if ref is None else target_key(meta.namespace, ref)
    return Other(VPAS.kind, meta.namespace, meta.name, target)


class Verdict(msgspec.Struct, frozen=True):
    """Whether an object is followed; the reason is empty where it is."""

    reason: str = ""
    message: str = ""


class Scene:
    """All ElasticWorkloads and what may be in their way, indexed by target and by name."""

    def __init__(self) -> None:
        self.workloads: dict[Key, ElasticWorkload] = {}
        self.others: dict[tuple[str, str, str], Other] = {}
        self._by_target: dict[TargetKey, set[Key]] = {}
        self._others_by_target: dict[TargetKey, set[tuple[str, str, str]]] = {}
        self._problems: dict[Key, tuple[str, ...]] = {}

    def put(self, key: Key, found: ElasticWorkload | None) -> set[Key]:
        """Take over an object, None for one that is gone; return the keys whose verdict may have changed."""
        touched = {key}
        before = self.workloads.pop(key, None)
        if before is not None:
            touched |= self._by_target[_target(before)]
            _discard(self._by_target, _target(before), key)
            if found is None or found.spec != before.spec:
                self._problems.pop(key, None)
        if found is not None:
            self.workloads[key] = found
            peers = self._by_target.setdefault(_target(found), set())
            peers.add(key)
            touched |= peers
        return touched

    def put_other(self, key: tuple[str, str, str], other: Other | None) -> set[Key]:
        """Take over an HPA or a VPA, None for one that is gone; return the keys whose verdict may have changed."""
        before = self.others.pop(key, None)
        touched = {(key[1], key[2])}
        for one in (before, other):
            if one is not None:
                touched |= self._by_target.get(one.target, set())
        if before is not None:
            _discard(self._others_by_target, before.target, key)
        if other is not None:
            self.others[key] = other
            self._others_by_target.setdefault(other.target, set()).add(key)
        return touched & self.workloads.keys()

    def verdict(self, key: Key) -> Verdict:
        """Return whether an object is followed. Raises KeyError for one that is not there."""
        found = self.workloads[key]
        if key not in self._problems:
            self._problems[key] = tuple(problems_of(found.spec))
        if self._problems[key]:
            return Verdict(INVALID, "; ".join(self._problems[key]))
        blockers = sorted(self._blockers(key, found))
        if blockers:
            target = found.spec.target_ref
            return Verdict(
                CONFLICT,
                f"{' and '.join(blockers)} in the way of {target.kind} {target.name}: "
                "this object changes nothing; delete the other, or this one",
            )
        return Verdict()

    def _blockers(self, key: Key, found: ElasticWorkload) -> Iterable[str]:
        """Yield who scales the same target, or has the name that a section goes by."""
        target, spec = _target(found), found.spec
        sections = {HPAS.kind: spec.horizontal, VPAS.kind: spec.vertical}
        for kind, _, name in self._others_by_target.get(target, ()):
            # Bounds of a schedule would be against those of the HPA.
            if sections[kind] is not None or (kind == HPAS.kind and spec.schedule is not None):
                yield f"{kind} {name} is"
        for kind, section in sections.items():
            same = self.others.get((kind, *key))
            if section is not None and same is not None and same.target != target:
                yield f"{kind} {same.name}, of the same name for another target, is"
        mine = _age(key, found)
        for other in self._by_target[target]:
            if other != key and _age(other, self.workloads[other]) < mine:
                yield f"the older ElasticWorkload {other[1]} is"


_K = TypeVar("_K")


def _discard(index: dict[TargetKey, set[_K]], target: TargetKey, key: _K) -> None:
    """Take a key from an index, and its target with the last of them."""
    index[target].discard(key)
    if not index[target]:
        del index[target]


def _target(found: ElasticWorkload) -> TargetKey:
    return target_key(found.metadata.namespace, found.spec.target_ref)


def _age(key: Key, found: ElasticWorkload) -> tuple[str, Key]:
    return found.metadata.creation_timestamp or "", key
