"""The nodes suite: recorded loops of upstream's Cluster Autoscaler.

The node controller of production runs in virtual time over the embedded store and a scripted cloud, which follows the
rules of the recording: machines come, join and vanish only as a story's changes say. What a step's loop and the
deletions after it did is compared with what was recorded; any of a step's alternatives is right, and ends the story.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import msgspec
import yaml
from msgspec.structs import replace
from tests.conformance.cases import Case, difference

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.explain.records import Record
from kubetide.loop import parse_flags
from kubetide.nodes.controller import NodesController
from kubetide.nodes.decision import Commands, EventRecord, Result
from kubetide.nodes.expander import ExpanderError, Option, parse_expanders
from kubetide.nodes.registry.update import not_begun
from kubetide.nodes.scale_up.tick import Round
from kubetide.nodes.settings import Settings
from kubetide.objects.base import Json
from kubetide.objects.kinds import CONFIG_MAPS, NODES, PODS, REPLICATION_CONTROLLERS, STORED_KINDS, Kind
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
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
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import ZERO, Duration, Instant, after, parse_duration, parse_rfc3339
from kubetide.watching import Caches

_START = parse_rfc3339("2026-01-01T00:00:00Z")
_GPU_LABEL = "cloud.example.com/accelerator"
_KINDS: dict[str, Kind[Any]] = {kind.kind: kind for kind in (*STORED_KINDS, REPLICATION_CONTROLLERS)}
_STATES = {"running": "Running", "creating": "Creating", "deleting": "Deleting"}
_CLASSES = {"OutOfResources": "OutOfResource", "Other": "Other"}
_CANDIDATE, _DELETED = "DeletionCandidateOfClusterAutoscaler", "ToBeDeletedByClusterAutoscaler"
COMPARED = (
    "scaleUps",
    "failedScaleUps",
    "decreasedTargets",
    "targetSizes",
    "deletedNodes",
    "evictedPods",
    "taintsAdded",
    "taintsRemoved",
    "cordoned",
    "uncordoned",
    "events",
    "unneededNodes",
    "scaleDownStatus",
    "clusterStateHealthy",
    "statusConfigMap",
    "statusConfigMapAnnotations",
    "scaleUpStatuses",
    "expander",
)
_commands = msgspec.json.Decoder(Commands)
_results = msgspec.json.Decoder(Result)


# ── the suite's face ────────────────────────────────────────────────────────────────────────────


def cases(document: Any) -> Iterator[Case]:
    if isinstance(document, list):
        yield from (case for case in document if "nodeGroups" in case)


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return str(case["group"])


def has_steps(case: Case) -> bool:
    return len(case.get("steps", ())) > 1


def metric_types(case: Case) -> set[str]:  # of the protocol
    return set()


def first_difference(case: Case, compared: Sequence[str] = COMPARED) -> str | None:
    """Play a story and return where it differs from what it expects, of the fields that are compared."""
    flags = {
        name: ",".join(value) if isinstance(value, list) else value for name, value in case["options"].items()
    }
    if "buildError" in case:
        try:
            parse_expanders(str(flags["expander"]))
        except ExpanderError as error:
            return None if case["buildError"] in str(error) else f"the error is {error}"
        return "the configuration was not refused"
    return run_virtual(lambda clock: _Story(case, flags, clock).play(compared), start=_START)


# ── the cloud ───────────────────────────────────────────────────────────────────────────────────


class _Cloud:
    """Groups that change only by calls and by the story."""

    gpu_label = _GPU_LABEL
    pod_prices = PodPrices()
    knows_machines: KnowsMachines = "groups"

    def __init__(self, case: Case) -> None:
        self.name = str(case["provider"].get("comparator", ""))
        if not case["provider"].get("hasInstanceImplemented", True):
            self.knows_machines = "unknown"
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


# ── the cluster and the recorder ────────────────────────────────────────────────────────────────


class _Cluster:
    """The embedded cluster with the recording's evictions, which delete pods at once."""

    def __init__(self, cluster: EmbeddedCluster, store: Store) -> None:
        self._cluster = cluster
        self._store = store
        self.evicted: list[Json] = []
        self.at_start: dict[str, Json] = {}
        self.refusals: dict[tuple[str, str], int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    async def patch(self, kind: Kind[Any], name: str, patch: Json, **more: Any) -> Any:
        """Write as the recording's API server does, which knows no conflicts.

        Upstream writes a soft taint into the node as the loop has listed it: there, unlike on a real one, what the
        same loop has written before is lost.
        """
        taints = (patch.get("spec") or {}).get("taints") or ()
        before = self.at_start.get(name)
        if kind is NODES and before and any(one["key"] == _CANDIDATE for one in taints):
            known = {one["key"] for one in before["spec"].get("taints") or ()}
            if (
                _CANDIDATE not in known
                and _DELETED not in known
                and any(one["key"] == _DELETED for one in taints)
            ):
                others = [one for one in taints if one["key"] != _DELETED]
                patch = {
                    **patch,
                    "spec": {"taints": others, "unschedulable": before["spec"].get("unschedulable")},
                }
        return await self._cluster.patch(kind, name, patch, **more)

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        del uid
        left = self.refusals.get((namespace, pod), 0)
        if left:
            self.refusals[namespace, pod] = left - 1
            raise TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.")
        found = await self._cluster.get(PODS, pod, namespace=namespace)
        self.evicted.append(
            {"pod": f"{namespace}/{pod}", "node": found.spec.node_name, "gracePeriodSeconds": grace_period_s}
        )
        self._store.remove(PODS, (namespace, pod))


class _Recorder:
    """A recorder that stores the events of the steps and the newest status document."""

    def __init__(self) -> None:
        self.events: list[EventRecord] = []
        self.status = ""

    def wants_full(self, loop: str) -> bool:  # of the protocol
        return False

    def write(self, record: Record, state: Any = None) -> None:  # of the protocol
        result = _results.decode(record.result)
        self.events += [*_commands.decode(record.commands).events, *result.events]
        self.status = result.status or self.status


# ── a story ─────────────────────────────────────────────────────────────────────────────────────


class _Story:
    def __init__(self, case: Case, flags: Mapping[str, Any], clock: Clock) -> None:
        self._case = case
        self._clock = clock
        self._store = Store(_KINDS.values())
        self._cluster = _Cluster(EmbeddedCluster(self._store, clock, seed=1), self._store)
        self._cloud = _Cloud(case)
        self._recorder = _Recorder()
        self._drains: dict[str, bool] = {}
        settings = parse_flags(flags).of(Settings)
        self._namespace, self._status_name = settings.namespace, settings.status_config_map_name
        for kind, items in case["cluster"]["objects"].items():
            for item in items:
                self._put(kind, item)
        for one in case["cluster"]["nodes"]:
            self._put("Node", one["node"])
        self._caches = Caches(self._cluster, clock)
        self._controller = NodesController(
            self._cluster,
            self._cloud,
            clock,
            self._recorder,
            None,
            replace(settings, status_interval=ZERO),
            seed=1,
            caches=self._caches,
        )
        # Upstream's random pick is the smallest id in the recording.
        self._controller.state.draw = lambda *_: 0.0

    async def play(self, compared: Sequence[str]) -> str | None:
        keeping = asyncio.create_task(self._caches.run())  # the story drives the ticks itself
        await self._controller._gatherer.synced()
        try:
            for number, step in enumerate(self._case.get("steps", ())):
                found = await self._step(step)
                expected = step["expect"]
                wrong = first_of(f"step {number}", expected, found, compared)
                if wrong is None:
                    continue
                others = step.get("expectAlternatives", ())
                return None if any(first_of("", one, found, compared) is None for one in others) else wrong
            return None
        finally:
            keeping.cancel()
            with suppress(asyncio.CancelledError):
                await keeping

    async def _step(self, step: Json) -> Json:
        now = parse_rfc3339(step["now"])
        await self._let_run(now)
        for change in step.get("changes", ()):
            self._change(change)
        await self._catch_up()
        before = self._cluster.at_start = self._nodes()
        self._recorder.events.clear()
        self._cluster.evicted.clear()
        cloud = self._cloud
        for log in (cloud.raised, cloud.refused, cloud.decreased, cloud.deleted):
            log.clear()
        await self._controller.tick()
        asked, statuses = self._asked(), self._scale_up_statuses()
        view = self._controller.state.view
        healthy = view is not None and view.healthy
        status = self._controller.state.memory.scale_down.status
        document = self._recorder.status
        self._note_drains()
        await self._let_run(after(now, parse_duration(step.get("settle", "0s"))))
        return {
            "scaleUps": list(cloud.raised),
            "failedScaleUps": list(cloud.refused),
            "decreasedTargets": list(cloud.decreased),
            "targetSizes": {name: one.target_size for name, one in cloud.groups.items()},
            "deletedNodes": self._deleted(before),
            "evictedPods": list(self._cluster.evicted),
            **_changed(before, self._nodes()),
            "events": [_event_of(one) for one in self._recorder.events],
            "unneededNodes": []
            if status.unneeded is None or status.result == "ScaleDownNotTried"
            else list(status.unneeded),
            "scaleDownStatus": _status_of(status),
            "clusterStateHealthy": healthy,
            "statusConfigMap": yaml.load(document, yaml.BaseLoader) if document else None,  # texts only
            "statusConfigMapAnnotations": self._annotations(),
            "scaleUpStatuses": statuses,
            "expander": asked,
        }

    def _annotations(self) -> Json:
        found = self._store.get(CONFIG_MAPS, (self._namespace, self._status_name))
        return {} if found is None else dict(found.json["metadata"].get("annotations") or {})

    async def _let_run(self, until: Instant) -> None:
        """Let time run, and the deletions in flight with it."""
        while (wake := self._controller.next_wake()) is not None and wake <= until:
            await self._clock.sleep(Duration(wake - self._clock.now()))
            await self._catch_up()
            await self._controller.wake()
            self._note_drains()
        await self._clock.sleep(Duration(until - self._clock.now()))

    async def _catch_up(self) -> None:
        for _ in range(5):
            await self._clock.sleep(ZERO)

    def _note_drains(self) -> None:
        deletions = self._controller.state.memory.scale_down.deletions
        self._drains.update({name: one.drain for name, one in deletions.items()})

    def _nodes(self) -> dict[str, Json]:
        return {one.key[1]: one.json for one in self._store.select(NODES, Selection(NODES))}

    def _put(self, kind: str, item: Json) -> None:
        if kind not in _KINDS:
            return
        found = _KINDS[kind]
        meta = item["metadata"]
        key = (meta.get("namespace", "default") if found.namespaced else "", meta["name"])
        self._store.put(found, key, {"apiVersion": found.api_version, "kind": found.kind, **item})

    def _change(self, change: Json) -> None:
        cloud = self._cloud
        match change["op"]:
            case "add" | "update":
                self._put(change["kind"], change["object"])
                if change["op"] == "add" and change["kind"] == "Node" and change.get("nodeGroup"):
                    provider_id = change["object"]["spec"]["providerID"]
                    there = cloud.groups[change["nodeGroup"]].instances or ()
                    if all(one.provider_id != provider_id for one in there):
                        cloud.put(change["nodeGroup"], {"id": provider_id})
            case "delete":
                kind = _KINDS[change["kind"]]
                key = (change.get("namespace", "default") if kind.namespaced else "", change["name"])
                self._store.remove(kind, key)
            case "addInstance" | "setInstance":
                cloud.put(change["nodeGroup"], change["instance"])
            case "removeInstance":
                cloud.drop(change["nodeGroup"], (change["id"],))
            case "setGroup":
                names = {"size": "target_size", "min": "min_size", "max": "max_size"}
                fields = {names[name]: value for name, value in change.items() if name in names}
                cloud.groups[change["nodeGroup"]] = replace(cloud.groups[change["nodeGroup"]], **fields)
            case "addNodeGroup":
                cloud.add(change["group"], {})
            case "increaseSizeError":
                cloud.increase_errors[change["nodeGroup"]] = change.get("message", "")
            case "deleteNodesError":
                cloud.delete_errors[change["nodeGroup"]] = change.get("message", "")
            case "evictionError":
                self._cluster.refusals[change.get("namespace", "default"), change["name"]] = change["count"]

    def _deleted(self, before: Mapping[str, Json]) -> list[Json]:
        names = {one["spec"].get("providerID"): name for name, one in before.items()}
        found = []
        for group_id, provider_id, force, error in self._cloud.deleted:
            name = names.get(provider_id, provider_id)
            kind = {True: "drain", False: "empty", None: "cleanup"}[self._drains.get(name)]
            # What is cleaned up was deleted as an instance, also where it has a node.
            entry = {"node": provider_id if kind == "cleanup" else name, "group": group_id, "kind": kind}
            found.append(entry | ({"force": True} if force else {}) | ({"error": error} if error else {}))
        return found

    def _asked(self) -> list[Json]:
        tick = self._controller.state.tick
        return [
            {"options": [_option_of(one) for one in attempt.options], "chosen": attempt.chosen[0].group.id}
            for attempt in (tick.rounds if tick is not None else ())
            if attempt.options and attempt.chosen
        ]

    def _scale_up_statuses(self) -> list[Json]:
        """Return the attempts of the loop; a loop that never came to scale-up has one that says so."""
        tick = self._controller.state.tick
        state = self._controller.state
        if not_begun(state):
            return []
        attempts = tick.rounds if tick is not None else [Round("ScaleUpNotTried")]
        if len(attempts) > 1 and not attempts[0].considered and attempts[0].result != "ScaleUpError":
            # Groups below their minimum were checked in place of pods, so there was nothing to report.
            attempts = attempts[1:]
        return [_scale_up_status_of(one) for one in attempts]


# ── comparing ───────────────────────────────────────────────────────────────────────────────────


def first_of(where: str, expected: Json, found: Json, compared: Sequence[str]) -> str | None:
    """Return the first difference between two outcomes of a step, of the fields that are compared."""
    for name in compared:
        required = expected.get(name)
        there = found.get(name)
        if "scaleDownStatus" not in expected and name in {"scaleDownStatus", "clusterStateHealthy"}:
            continue  # the loop ended before either was looked at
        if not required and not there and required is not False and there is not False:
            continue
        wrong = difference(f"{where}.{name}", _plain(required, name), _plain(there, name))
        if wrong:
            return wrong
    return None


def _plain(value: Any, name: str) -> Any:
    """Return a value with its lists in order, and of a document its leaves as text."""
    if isinstance(value, dict):
        named = {key: _plain(one, name) for key, one in value.items() if key != "randomAmong"}
        if "reason" in named and "message" in named:
            named["message"] = _message(named["reason"], named["message"])
        return {key: one for key, one in named.items() if one not in (None, "", [], {})}
    if isinstance(value, list):
        return sorted(
            (_plain(one, name) for one in value), key=lambda one: msgspec.json.encode(one, order="sorted")
        )
    if name == "statusConfigMap":
        return (
            "" if value in (None, "null") else str(value).lower() if isinstance(value, bool) else str(value)
        )
    if isinstance(value, float):
        return float(Decimal(value).quantize(Decimal("0.000001"), ROUND_HALF_UP))
    return value


def _message(reason: str, message: str) -> str:
    """Return an event's message with what may come in any order in order."""
    if reason == "NotTriggerScaleUp" and ": " in message:
        first, _, rest = message.partition(": ")
        return f"{first}: {', '.join(sorted(re.split(r', (?=[0-9]+ )', rest)))}"
    return message


def _event_of(event: EventRecord) -> Json:
    return {
        "object": f"{event.kind}/{event.namespace}/{event.name}",
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
    }


def _option_of(option: Option) -> Json:
    return {
        "group": option.group.id,
        "nodeCount": option.nodes,
        "pods": len(option.pods),
        "similarGroups": list(option.similar),
    }


def _scale_up_status_of(attempt: Round) -> Json:
    return {
        "result": attempt.result,
        "error": {"type": attempt.error_type, "message": attempt.error} if attempt.error_type else None,
        "scaleUpInfos": [
            {
                "group": one.group.id,
                "currentSize": one.grown_from,
                "newSize": one.size,
                "maxSize": one.group.max_size,
            }
            for one in attempt.increases
        ],
        "podsTriggeredScaleUp": _names(attempt.triggered),
        "podsRemainUnschedulable": [
            {
                "pod": name,
                "rejected": {group: list(one.reasons) for group, one in rejected.items()},
                "skipped": {
                    group: list(words) for group, words in attempt.skipped.items() if group not in rejected
                },
            }
            for pods, rejected in attempt.remain
            for name in _names(pods)
        ],
        "podsAwaitEvaluation": _names(attempt.awaiting),
        "consideredNodeGroups": list(attempt.considered),
        "failedResizeNodeGroups": list(attempt.failed),
    }


def _names(pods: Sequence[Pod]) -> list[str]:
    return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods]


def _taints(node: Json) -> set[str]:
    return {
        f"{one['key']}={one.get('value', '')}:{one['effect']}" for one in node["spec"].get("taints") or ()
    }


def _changed(before: Mapping[str, Json], now: Mapping[str, Json]) -> Json:
    both = [name for name in before if name in now]
    cordon = {
        name: bool(now[name]["spec"].get("unschedulable")) - bool(before[name]["spec"].get("unschedulable"))
        for name in both
    }
    return {
        "taintsAdded": {name: sorted(_taints(now[name]) - _taints(before[name])) for name in both},
        "taintsRemoved": {name: sorted(_taints(before[name]) - _taints(now[name])) for name in both},
        "cordoned": [name for name, change in cordon.items() if change > 0],
        "uncordoned": [name for name, change in cordon.items() if change < 0],
    }


def _status_of(status: Any) -> Json:
    return {
        "result": status.result,
        "scaledDownNodes": [
            {
                "node": one.node,
                "group": one.group,
                "kind": one.kind,
                "evictedPods": list(one.evicted_pods),
                "utilization": one.utilization,
                "utilizationResource": one.resource,
            }
            for one in status.scaled_down
        ],
        "unremovableNodes": [
            {
                "node": one.node,
                "group": one.group,
                "reason": one.reason,
                "blockingPod": one.blocking_pod,
                "blockingPodReason": one.blocking_reason,
                "utilization": one.utilization,
                "utilizationResource": one.resource,
            }
            for one in status.unremovable
            if one.group
        ],
        "nodeDeleteResults": {
            name: {"result": one.result, "error": one.error} for name, one in status.delete_results.items()
        },
    }
