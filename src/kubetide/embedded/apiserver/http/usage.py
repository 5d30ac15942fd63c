"""metrics.k8s.io/v1beta1: what pods and nodes use, computed when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import msgspec

from kubetide.embedded.apiserver.http.routes import Target
from kubetide.embedded.apiserver.store.errors import not_found
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.objects.kinds import NODE_METRICS, POD_METRICS
from kubetide.objects.metrics import NodeMetrics, PodMetrics
from kubetide.ports.errors import MethodNotAllowed

USAGE_KINDS = (POD_METRICS, NODE_METRICS)


class Metrics(Protocol):
    """Where usage comes from."""

    def pod_metrics(self) -> list[PodMetrics]:
        """Return all pods' usage, ordered by namespace and name."""
        ...

    def node_metrics(self) -> list[NodeMetrics]:
        """Return all nodes' usage, ordered by name."""
        ...


def read_usage(
    metrics: Metrics, target: Target, verb: str, *, labels: str, fields: str, version: int
) -> list[Revision]:
    """Return the usage that a get (one) or a list asks for. Raises NotFound, MethodNotAllowed, BadRequest."""
    if verb not in {"get", "list"} or target.subresource:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    items: Sequence[Any] = (
        metrics.pod_metrics() if target.kind.resource == POD_METRICS.resource else metrics.node_metrics()
    )
    found = []
    selection = Selection(target.kind, target.namespace, labels, fields)
    for item in items:
        key = (item.metadata.namespace, item.metadata.name)
        if (target.namespace and key[0] != target.namespace) or (target.name and key[1] != target.name):
            continue
        revision = Revision(version, key, msgspec.to_builtins(item))
        if selection.matches(revision):
            found.append(revision)
    if verb == "get" and not found:
        raise not_found(target.kind, target.name)
    return found
