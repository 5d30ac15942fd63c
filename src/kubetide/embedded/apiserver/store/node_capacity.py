"""Whether the node of a pod could ever hold what a resize asks for.

Source: the admission of ``pods/resize`` by kube-apiserver v1.36.2, as it answers.
"""

from __future__ import annotations

from kubetide.embedded.apiserver.store.errors import forbidden
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod_requests import pod_requests
from kubetide.units.quantity import ZERO, Quantity


def check_node_capacity(store: Store, pod: Json) -> None:
    """Raise Forbidden for a bound pod that asks for more than its node's allocatable, whoever else is there."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    node_name = spec.get("nodeName")
    if not node_name:
        return
    node = store.get(NODES, ("", node_name))
    if node is None:
        raise forbidden(PODS, name, f'node "{node_name}" not found')
    allocatable = (node.json.get("status") or {}).get("allocatable") or {}
    asked = pod_requests(spec)
    too_much = []
    for resource in ("cpu", "memory"):
        requested, there = asked.get(resource, ZERO), Quantity.parse(str(allocatable.get(resource, "0")))
        if requested > there:
            shown = [q.milli_value() if resource == "cpu" else q.value() for q in (requested, there)]
            too_much.append(f"{resource}, requested: {shown[0]}, allocatable: {shown[1]}")
    if too_much:
        detail = f"node didn't have enough allocatable resources: {'; '.join(too_much)}"
        raise forbidden(PODS, name, detail, causes=({"reason": "NodeCapacity"},))
