"""From ``scaleTargetRef`` to a scale: which kind it names, and the values of its scale.

Source: horizontal controller v1.36: the version of the reference plays no part, and an all-lower-case
kind is found too. The mapping of kinds is discovered, and anew after 30 s. The scale client reads the
selector text and prints it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from kubetide.acting import UNANSWERED, in_time
from kubetide.horizontal.facts.specs import Autoscaler
from kubetide.horizontal.facts.views import ScaleView
from kubetide.horizontal.options.rollouts import belong_to, starting_set
from kubetide.objects.kinds import DEPLOYMENTS, REPLICA_SETS, Kind
from kubetide.objects.meta import Key
from kubetide.objects.workload import Deployment, ReplicaSet, Scale
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import Instant, between, seconds

_DISCOVERED_EVERY = seconds(30)

_ByName = dict[tuple[str, str], Kind[Any]]

Workloads = Mapping[tuple[str, str], Mapping[Key, Any]]
"""Objects that a cache holds, by (group, kind) and key: their scale need not be asked for."""


class TargetError(Exception):
    """A reference to nothing; ``stage`` is ``version`` or ``resource``."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Targets:
    """Finds the kind behind a reference, and reads scales.

    Args:
        cluster: Where the scales are, and the kinds that are not known beforehand.
        kinds: What a reference may mean without asking the cluster.
        workloads: What caches hold.
        clock: For when the cluster was asked for its kinds.
    """

    def __init__(
        self, cluster: Cluster, kinds: Iterable[Kind[Any]], workloads: Workloads, clock: Clock
    ) -> None:
        self._cluster = cluster
        self._workloads = workloads
        self._clock = clock
        self._kinds = _by_name(kinds)
        self._discovered: _ByName = {}
        self._asked: Instant | None = None
        self._problem = ""

    async def learn(self, specs: Iterable[Autoscaler]) -> None:
        """Query the served kinds if a reference needs it and 30 s have passed.

        A kind may come and go while the loop runs. When the cluster does not answer, what was known of
        it stays, and references that lead nowhere get its error.
        """
        if all((_group_of(spec.api_version), spec.kind) in self._kinds for spec in specs):
            return
        now = self._clock.now()
        if self._asked is not None and between(self._asked, now) < _DISCOVERED_EVERY:
            return
        self._asked = now
        try:
            self._discovered = _by_name(await self._cluster.kinds())
            self._problem = ""
        except ApiError as error:
            self._problem = str(error)

    def kind_of(self, api_version: str, kind: str) -> Kind[Any]:
        """Return the referenced kind. Raises TargetError."""
        if api_version.count("/") > 1:
            raise TargetError("version", f"unexpected GroupVersion string: {api_version}")
        group = _group_of(api_version)
        found = self._kinds.get((group, kind)) or self._discovered.get((group, kind))
        if found is None:
            problem = self._problem or f'no matches for kind "{kind}" in group "{group}"'
            raise TargetError("resource", problem)
        return found

    def with_owners(self, spec: Autoscaler, scale: ScaleView) -> ScaleView:
        """Return a scale with the objects that may control the target's pods, for HPAs that ask for it."""
        if not spec.options.asks_for_owners or scale.error:
            return scale
        target: Any = self.cached(spec)
        kind = self.name_of(spec)
        if kind != DEPLOYMENTS.kind or target is None:
            return msgspec.structs.replace(scale, owners=(f"{kind}/{spec.target}",))
        cached = self._workloads.get((REPLICA_SETS.group, REPLICA_SETS.kind), {})
        there = [one for key, one in cached.items() if key[0] == spec.key[0]]
        sets = belong_to(target.metadata.uid, there)
        newest = starting_set(sets) if spec.options.count_old_during_rollout else None
        return msgspec.structs.replace(
            scale,
            owners=tuple(f"{REPLICA_SETS.kind}/{one.metadata.name}" for one in sets),
            starting=(f"{REPLICA_SETS.kind}/{newest.metadata.name}",) if newest is not None else (),
        )

    def cached(self, spec: Autoscaler) -> object | None:
        """Return the target from a cache, or None if it or its kind is not cached."""
        objects = self._workloads.get((_group_of(spec.api_version), self.name_of(spec)))
        return None if objects is None else objects.get((spec.key[0], spec.target))

    def name_of(self, spec: Autoscaler) -> str:
        """Return the referenced kind as the cluster writes it."""
        reference = _group_of(spec.api_version), spec.kind
        found = self._kinds.get(reference) or self._discovered.get(reference)
        return spec.kind if found is None else found.kind

    async def read(self, spec: Autoscaler) -> ScaleView:
        """Return the target's scale from the API server; a view with an error if that fails."""
        namespace, name = spec.key
        try:
            kind = self.kind_of(spec.api_version, spec.kind)
        except TargetError as error:
            return ScaleView(namespace, name, error=str(error), error_stage=error.stage)
        try:
            scale = await in_time(self._cluster.get_scale(kind, spec.target, namespace=namespace))
            return _view_of_scale(namespace, name, scale)
        except TimeoutError:
            return ScaleView(namespace, name, error=UNANSWERED, error_stage="query")
        except ApiError as error:
            return ScaleView(namespace, name, error=str(error), error_stage="query")
        except SelectorError as error:
            text = (
                "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
                f"failed to parse target selector: {error}"
            )
            return ScaleView(namespace, name, error=text, error_stage="query")


def _by_name(kinds: Iterable[Kind[Any]]) -> _ByName:
    """Return the first kind of each group and name, and of its name in lower case."""
    found: _ByName = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.kind), kind)
        found.setdefault((kind.group, kind.kind.lower()), kind)
    return found


@lru_cache(maxsize=256)
def _group_of(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _view_of_scale(namespace: str, name: str, scale: Scale) -> ScaleView:
    """Raise SelectorError for a selector that the scale client cannot take."""
    text = scale.status.selector
    return ScaleView(
        namespace=namespace,
        name=name,
        spec_replicas=scale.spec.replicas,
        status_replicas=scale.status.replicas,
        selector=str(Selector.parse(text).as_scale_selector()) if text else "",
        resource_version=scale.metadata.resource_version,
    )


def view_of_workload(spec: Autoscaler, workload: Deployment | ReplicaSet) -> ScaleView:
    """Return the scale of a cached object, as its ``scale`` subresource would show it."""
    namespace, name = spec.key
    try:
        selector = str(Selector.from_object(workload.spec.selector))
    except SelectorError as error:
        return ScaleView(namespace, name, error=str(error), error_stage="query")
    replicas = workload.spec.replicas
    return ScaleView(
        namespace=namespace,
        name=name,
        spec_replicas=1 if replicas is None else replicas,
        status_replicas=workload.status.replicas,
        selector=selector,
        resource_version=workload.metadata.resource_version,
    )
