"""The world of a recorded story: a scripted cloud, a cluster that evicts as the recording's did, and a recorder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.conformance.cases import Case

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.explain.records import Record
from kubetide.nodes.decision import Commands, EventRecord, Result
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, PODS, Kind
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import (
    GroupOptions,
    Instance,
    InstanceError,
    KnowsMachines,
    NodeGroup,
    NodeTemplate,
    PodPrices,
)
from kubetide.ports.errors import CloudError, TooManyRequests

EVICTION_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_GPU_LABEL = "cloud.example.com/accelerator"
_STATES = {"running": "Running", "creating": "Creating", "deleting": "Deleting"}
_CLASSES = {"OutOfResources": "OutOfResource", "Other": "Other"}
_CANDIDATE, _DELETED = "DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler"
_commands = msgspec.json.Decoder(Commands)
_results = msgspec.json.Decoder(Result)


class Cloud:
    """Groups that change only by calls and by the story."""

    gpu_label = _GPU_LABEL
    pod_prices = PodPrices()
    knows_machines: KnowsMachines = "groups"

    def __init__(self, case: Case) -> None:
        self.name = str(case["provider"].get("comparator", ""))
        if not case["provider"].get("hasInstanceImplemented", True):
            self.knows_machines = "former"
        pricing = case["provider"].get("pricing", {})
        prices = pricing.get("nodePricePerHourByInstanceType", {})
        if pricing:
            self.pod_prices = PodPrices(pricing["podPricePerCpuHour"], pricing["podPricePerGiBHour"])
        self.groups: dict[str, NodeGroup] = {}
        self.increase_errors: dict[str, str] = {}
        self.delete_errors: dict[str, str] = {}
        self.raised: list[Json] = []
        self.refused: list[Json] = []
        self.decreased: list[Json] = []
        self.deleted: list[tuple[str, str, bool, str]] = []
        for one in case["nodeGroups"]:
            self.add(one, prices)
        for one in case["cluster"]["nodes"]:
            if one.get("nodeGroup"):
                self.put(one["nodeGroup"], {"id": one["node"]["spec"]["providerID"]})

    def add(self, one: Json, prices: Mapping[str, float]) -> None:
        template = one.get("template")
        labels = ((template or {}).get("metadata") or {}).get("labels") or {}
        known = {name.lower(): name for name in GroupOptions.__struct_encode_fields__}
        options = {known.get(name.lower(), name): value for name, value in (one.get("options") or {}).items()}
        self.groups[one["id"]] = NodeGroup(
            id=one["id"],
            min_size=one["min"],
            max_size=one["max"],
            target_size=one["targetSize"],
            instances=(),
            template=None
            if template is None
            else NodeTemplate(
                node=msgspec.convert(template, Node),
                pods=msgspec.convert(one.get("templatePods"), tuple[Pod, ...] | None),
                source="recorded",
            ),
            options=msgspec.convert(options, GroupOptions) if options else None,
            exists=one.get("exists", True),
            price_per_hour=prices.get(labels.get("node.kubernetes.io/instance-type", "")),
        )
        for instance in one.get("instances") or ():
            self.put(one["id"], instance)

    def put(self, group_id: str, instance: Json) -> None:
        error = None
        if instance.get("errorClass"):
            error = InstanceError(
                error_class=_CLASSES[instance["errorClass"]],
                error_code=instance.get("errorCode", ""),
                error_message=instance.get("errorMessage", ""),
            )
        made = Instance(
            provider_id=instance["id"], state=_STATES[instance.get("state", "running")], error=error
        )
        self.drop(group_id, (made.provider_id,))
        there = self.groups[group_id]
        instances = sorted((*(there.instances or ()), made), key=lambda one: one.provider_id)
        self.groups[group_id] = replace(there, instances=tuple(instances))

    def drop(self, group_id: str, ids: Sequence[str]) -> int:
        there = self.groups[group_id]
        left = tuple(one for one in there.instances or () if one.provider_id not in ids)
        self.groups[group_id] = replace(there, instances=left)
        return len(there.instances or ()) - len(left)

    def resize(self, group_id: str, target: int) -> None:
        self.groups[group_id] = replace(self.groups[group_id], target_size=target)

    async def refresh(self) -> Sequence[NodeGroup]:
        return [self.groups[name] for name in sorted(self.groups)]

    async def increase_size(self, group_id: str, delta: int) -> None:
        there = self.groups[group_id]
        error = self.increase_errors.get(group_id, "")
        if there.target_size + delta > there.max_size:
            error = "size increase too large"
        if error:
            self.refused.append({"group": group_id, "delta": delta, "error": error})
            raise CloudError(error)
        self.raised.append({"group": group_id, "delta": delta})
        self.resize(group_id, there.target_size + delta)

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        there = self.groups[group_id]
        entry: Json = {"group": group_id, "delta": -delta}
        self.decreased.append(entry)
        if there.target_size - delta < len(there.instances or ()):
            entry["error"] = "attempt to delete existing nodes"
            raise CloudError(entry["error"])
        self.resize(group_id, there.target_size - delta)

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        error = self.delete_errors.get(group_id, "")
        self.deleted += [(group_id, one, force, error) for one in provider_ids]
        if error:
            raise CloudError(error)
        dropped = self.drop(group_id, provider_ids)
        self.resize(group_id, self.groups[group_id].target_size - dropped)


class Cluster:
    """The embedded cluster with the recording's evictions, which delete pods at once."""

    def __init__(self, cluster: EmbeddedCluster, store: Store) -> None:
        self._cluster = cluster
        self._store = store
        self.evicted: list[Json] = []
        self.at_start: dict[str, Json] = {}
        self.refusals: dict[tuple[str, str], int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def replace(self, kind: Kind[Any], body: Json, **more: Any) -> Any:
        """Write as the recording's API server does, which knows no conflicts.

        Upstream writes a soft taint into the node as the loop has listed it: there, unlike on a real one, what the
        same loop has written before is lost.
        """
        taints = (body.get("spec") or {}).get("taints") or ()
        before = self.at_start.get(body["metadata"]["name"])
        if kind.resource == NODES.resource and before and any(one["key"] == _CANDIDATE for one in taints):
            known = {one["key"] for one in before["spec"].get("taints") or ()}
            if (
                _CANDIDATE not in known
                and _DELETED not in known
                and any(one["key"] == _DELETED for one in taints)
            ):
                others = [one for one in taints if one["key"] != _DELETED]
                cordoned = before["spec"].get("unschedulable", False)
                body = {**body, "spec": {**body["spec"], "taints": others, "unschedulable": cordoned}}
        return await self._cluster.replace(kind, body, **more)

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        del uid
        found = await self._cluster.get(PODS, pod, namespace=namespace)
        left = self.refusals.get((namespace, pod), 0)
        if left:
            self.refusals[namespace, pod] = left - 1
            raise TooManyRequests(EVICTION_REFUSED)
        self.evicted.append(
            {"pod": f"{namespace}/{pod}", "node": found.spec.node_name, "gracePeriodSeconds": grace_period_s}
        )
        self._store.remove(PODS, (namespace, pod))


class Recorder:
    """A recorder that stores the events of the steps and the newest status document."""

    def __init__(self) -> None:
        self.events: list[EventRecord] = []
        self.status = ""

    def wants_full(self, loop: str) -> bool:  # of the protocol
        return False

    def write(self, record: Record) -> None:  # of the protocol
        result = _results.decode(record.result)
        self.events += [*_commands.decode(record.commands).events, *result.events]
        self.status = result.status or self.status
