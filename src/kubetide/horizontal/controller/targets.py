"""From ``scaleTargetRef`` to a scale: which kind is meant, and what its scale says.

Source: horizontal controller v1.36: the version of the reference plays no part, and an all-lower-case
kind is found too. The scale client reads the selector text and prints it again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubetide.horizontal.specs import Autoscaler
from kubetide.horizontal.views import Key, ScaleView
from kubetide.objects.kinds import Kind
from kubetide.objects.workload import Deployment, ReplicaSet, Scale
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError
from kubetide.units.selectors import Selector, SelectorError

Workloads = Mapping[tuple[str, str], Mapping[Key, Any]]
"""Objects that a cache holds, by (group, kind) and key: their scale need not be asked for."""


class TargetError(Exception):
    """A reference that leads nowhere; ``stage`` is ``version`` or ``resource``."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


class Targets:
    """Finds the kind behind a reference, and reads scales."""

    def __init__(self, cluster: Cluster, kinds: Iterable[Kind[Any]], workloads: Workloads) -> None:
        self._cluster = cluster
        self._workloads = workloads
        self._kinds: dict[tuple[str, str], Kind[Any]] = {}
        for kind in kinds:
            self._kinds.setdefault((kind.group, kind.kind), kind)
            self._kinds.setdefault((kind.group, kind.kind.lower()), kind)

    def kind_of(self, api_version: str, kind: str) -> Kind[Any]:
        """Gives the kind that is meant. Raises TargetError."""
        if api_version.count("/") > 1:
            raise TargetError("version", f"unexpected GroupVersion string: {api_version}")
        group = api_version.rpartition("/")[0]
        found = self._kinds.get((group, kind))
        if found is None:
            raise TargetError("resource", f'no matches for kind "{kind}" in group "{group}"')
        return found

    def cached(self, spec: Autoscaler) -> object | None:
        """Gives the target from a cache, or None if its kind is not cached or it is not there."""
        group = spec.api_version.rpartition("/")[0]
        objects = self._workloads.get((group, spec.kind))
        return None if objects is None else objects.get((spec.key[0], spec.target))

    async def read(self, spec: Autoscaler) -> ScaleView:
        """Asks for the target's scale; a view with an error when it cannot be had."""
        namespace, name = spec.key
        try:
            kind = self.kind_of(spec.api_version, spec.kind)
        except TargetError as error:
            return ScaleView(namespace, name, error=str(error), error_stage=error.stage)
        try:
            scale = await self._cluster.get_scale(kind, spec.target, namespace=namespace)
            return _view_of_scale(namespace, name, scale)
        except ApiError as error:
            return ScaleView(namespace, name, error=str(error), error_stage="query")
        except SelectorError as error:
            text = (
                "received an object from a /scale endpoint which was not convertible to autoscaling Scale: "
                f"failed to parse target selector: {error}"
            )
            return ScaleView(namespace, name, error=text, error_stage="query")


def _view_of_scale(namespace: str, name: str, scale: Scale) -> ScaleView:
    """Raises SelectorError for a selector that the scale client cannot take."""
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
    """Gives the scale of an object that a cache holds, as its ``scale`` subresource would show it."""
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
