"""Targets of VPAs: well-known controllers from caches, others through their scale.

Source: VPA 1.8: the selector of a target is read in every pass, and the scales of its owners again after ten minutes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from kubetide.acting import UNANSWERED, in_parallel, in_time
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import ApiObject, Key
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import Scale
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.units.time import ZERO, Duration, minutes
from kubetide.vertical.targets import (
    ControllerKey,
    Controllers,
    ScaleNotFound,
    Target,
    TargetError,
    read_target,
    unhandled,
)

_FRESH = minutes(10)
_KINDS_FRESH = minutes(5)
"""So long a kind that is not served is not looked for again; upstream discovers kinds so often."""
_DEPTH = 8
"""So many owners, one above the other, are asked for in one pass."""


class _Answer(NamedTuple):
    at: Duration
    scale: Scale | None
    error: str = ""
    absent: bool = False
    """Whether the API server has no such scale."""


class TargetReader:
    """Reads the targets of VPAs.

    Args:
        caches: Objects by kind's name and key.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, caches: Mapping[str, Mapping[Key, ApiObject]], limit: int
    ) -> None:
        self._cluster = cluster
        self._clock = clock
        self.caches = caches
        self._limit = limit
        self._answers: dict[ControllerKey, _Answer] = {}
        self._kinds: dict[tuple[str, str], Kind[Any]] = {}
        self._missing: dict[ControllerKey, None] = {}
        self._problem = ""
        """Why the last request for all kinds failed; then the next pass asks again."""

    async def read(
        self, vpas: Iterable[VerticalPodAutoscaler], served: Collection[Key] = ()
    ) -> dict[Key, Target]:
        """Return the target of each VPA; reads the scales of targets that no cache holds.

        Args:
            served: VPAs for whose targets no answer of an earlier pass will do.
        """
        known = Controllers(self._get, self._scale)
        left = {(vpa.metadata.namespace, vpa.metadata.name): vpa for vpa in vpas}
        found: dict[Key, Target] = {}
        self._forget({_target_key(key[0], vpa) for key, vpa in left.items() if key in served})
        for _ in range(_DEPTH):
            again: dict[Key, VerticalPodAutoscaler] = {}
            asked: dict[ControllerKey, None] = {}
            for key, vpa in left.items():
                self._missing = {}
                found[key] = read_target(key[0], vpa.spec.target_ref, known)
                if self._missing:
                    again[key] = vpa
                    asked |= self._missing
            if not asked:
                break
            await self._ask(list(asked))
            left = again
        return found

    def _forget(self, targets: Collection[ControllerKey | None]) -> None:
        """Forget old answers, and all about these targets; kinds that are not served are not looked for each time."""
        now = self._clock.monotonic()
        self._answers = {
            key: one
            for key, one in self._answers.items()
            if now - one.at < _FRESH and not (key in targets and _group_kind(key) in self._kinds)
        }

    def _get(self, namespace: str, kind: str, name: str) -> ApiObject | None:
        return self.caches.get(kind, {}).get((namespace, name))

    def _scale(self, key: ControllerKey) -> Scale:
        answer = self._answers.get(key)
        if answer is None:
            self._missing[key] = None
            raise TargetError("it has not been asked for yet")
        if answer.scale is None:
            text = unhandled(key, answer.error)
            raise ScaleNotFound(text) if answer.absent else TargetError(text)
        return answer.scale

    async def _ask(self, keys: list[ControllerKey]) -> None:
        self._problem = ""
        if any(_group_kind(key) not in self._kinds for key in keys):
            try:
                kinds = await self._cluster.kinds()
            except ApiError as error:
                kinds, self._problem = (), str(error)
            self._kinds |= {(kind.group, kind.kind): kind for kind in reversed(kinds)}
        for key, answer in zip(keys, await in_parallel(keys, self._ask_one, limit=self._limit), strict=True):
            self._answers[key] = answer

    async def _ask_one(self, key: ControllerKey) -> _Answer:
        now = self._clock.monotonic()
        kind = self._kinds.get(_group_kind(key))
        if kind is None:
            group = key.api_version.rpartition("/")[0]
            text = self._problem or f'no matches for kind "{key.kind}" in group "{group}"'
            life = ZERO if self._problem else _KINDS_FRESH
            return _Answer(Duration(now - _FRESH + life), None, text)
        try:
            scale = await in_time(self._cluster.get_scale(kind, key.name, namespace=key.namespace))
            return _Answer(now, scale)
        except TimeoutError:
            return _Answer(now, None, UNANSWERED)
        except ApiError as error:
            return _Answer(now, None, str(error), absent=isinstance(error, NotFound))


def _target_key(namespace: str, vpa: VerticalPodAutoscaler) -> ControllerKey | None:
    ref = vpa.spec.target_ref
    return None if ref is None else ControllerKey(namespace, ref.kind, ref.name, ref.api_version)


def _group_kind(key: ControllerKey) -> tuple[str, str]:
    return key.api_version.rpartition("/")[0], key.kind
