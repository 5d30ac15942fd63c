"""The cluster and the cloud of a story, as plain dictionaries that the reference changes as it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubetide.units.time import Duration, Instant, parse_duration

Json = dict[str, Any]
Key = tuple[str, str]
"""Namespace and name of an object."""

# Upstream's defaults of the flags that the reference reads.
DEFAULTS = {
    "allowed-scheduler-names": "",
    "balance-similar-node-groups": "false",
    "balancing-ignore-label": "",
    "blocking-system-pod-distruption-timeout": "1h",
    "bypassed-scheduler-names": "",
    "cordon-node-before-terminating": "true",
    "cores-total": "0:320000",
    "daemonset-eviction-for-empty-nodes": "false",
    "daemonset-eviction-for-occupied-nodes": "true",
    "drain-priority-config": "",
    "enable-proactive-scaleup": "false",
    "enforce-node-group-min-size": "false",
    "expander": "least-waste",
    "expendable-pods-priority-cutoff": "-10",
    "force-delete-failed-nodes": "false",
    "force-delete-unregistered-nodes": "false",
    "force-ds": "false",
    "gpu-total": "",
    "ignore-daemonsets-utilization": "false",
    "ignore-mirror-pods-utilization": "false",
    "initial-node-group-backoff-duration": "5m",
    "max-allocatable-difference-ratio": "0.05",
    "max-bulk-soft-taint-count": "10",
    "max-bulk-soft-taint-time": "3s",
    "max-drain-parallelism": "1",
    "max-free-difference-ratio": "0.05",
    "max-graceful-termination-sec": "600",
    "max-node-group-backoff-duration": "30m",
    "max-node-provision-time": "15m",
    "max-node-startup-time": "15m",
    "max-nodes-per-scaleup": "1000",
    "max-nodes-total": "0",
    "max-pod-eviction-time": "2m",
    "max-scale-down-parallelism": "10",
    "max-total-unready-percentage": "45",
    "memory-difference-ratio": "0.015",
    "memory-total": "0:6400000",
    "min-replica-count": "0",
    "new-pod-scale-up-delay": "0s",
    "node-delete-delay-after-taint": "5s",
    "node-deletion-batcher-interval": "0s",
    "node-deletion-candidate-ttl": "0s",
    "node-deletion-delay-timeout": "2m",
    "node-group-backoff-reset-timeout": "3h",
    "ok-total-unready-count": "3",
    "parallel-scale-up": "false",
    "pod-injection-limit": "5000",
    "salvo-scale-up": "false",
    "scale-down-delay-after-add": "10m",
    "scale-down-delay-after-delete": "0s",
    "scale-down-delay-after-failure": "3m",
    "scale-down-delay-type-local": "false",
    "scale-down-enabled": "true",
    "scale-down-gpu-utilization-threshold": "0.5",
    "scale-down-unneeded-time": "10m",
    "scale-down-unready-enabled": "true",
    "scale-down-unready-time": "20m",
    "scale-down-utilization-threshold": "0.5",
    "scale-from-unschedulable": "false",
    "scale-up-from-zero": "true",
    "skip-nodes-with-custom-controller-pods": "true",
    "skip-nodes-with-local-storage": "true",
    "skip-nodes-with-system-pods": "true",
    "startup-taint": "",
    "startup-taint-prefix": "",
    "status-config-map-name": "cluster-autoscaler-status",
    "status-taint": "",
    "unremovable-node-recheck-timeout": "5m",
    "write-status-configmap": "true",
}


@dataclass
class Flags:
    """The options of a story over upstream's defaults."""

    given: dict[str, Any]

    def text(self, name: str) -> str:
        return str(self.given.get(name, DEFAULTS[name]))

    def on(self, name: str) -> bool:
        return self.text(name) == "true"

    def whole(self, name: str) -> int:
        return int(self.text(name))

    def number(self, name: str) -> float:
        return float(self.text(name))

    def duration(self, name: str) -> Duration:
        return parse_duration(self.text(name))

    def names(self, name: str) -> list[str]:
        """A flag that may be given many times, or holds names with commas between them."""
        given = self.given.get(name) or []
        parts = given if isinstance(given, list) else str(given).split(",")
        return [str(one) for one in parts]

    def limits(self, name: str) -> tuple[int, int]:
        low, high = self.text(name).split(":")
        return int(low), int(high)


@dataclass
class Machine:
    """An instance of a group, in the story's words."""

    id: str
    state: str = "running"  # or creating, deleting
    error_class: str = ""  # OutOfResources, Other
    error_code: str = ""
    error_message: str = ""


@dataclass
class Group:
    """A node group. `options` are those that a story overrides, named as in the story."""

    id: str
    min: int
    max: int
    target: int
    template: Json | None = None
    template_pods: list[Json] = field(default_factory=list)
    options: Json = field(default_factory=dict)
    machines: dict[str, Machine] = field(default_factory=dict)
    exists: bool = True


class CloudRefusal(Exception):
    """What the story's cloud answers to a call that it does not carry out."""


@dataclass
class World:
    """All that a loop can see. The calls of the cloud follow the rules of the recording's test cloud."""

    flags: Flags
    groups: dict[str, Group]
    nodes: dict[str, Json]
    group_of: dict[str, str]  # provider id → group; stays when the machine is gone
    objects: dict[str, dict[Key, Json]]  # kind → objects; pods too
    now: Instant
    has_instance_implemented: bool = True
    comparator: str = ""
    """The cloud whose rule says which groups are similar."""
    pricing: Json = field(default_factory=dict)
    increase_errors: dict[str, str] = field(default_factory=dict)
    delete_errors: dict[str, str] = field(default_factory=dict)
    events: list[Json] = field(default_factory=list)
    """Those of the step, in the words of the recording."""
    eviction_errors: dict[Key, int] = field(default_factory=dict)
    """How many more evictions of a pod are refused; without end if negative."""

    @classmethod
    def of(cls, story: Json, now: Instant) -> World:
        implemented = story["provider"].get("hasInstanceImplemented", True)
        made = cls(Flags(story["options"]), {}, {}, {}, {}, now, implemented)
        made.comparator = story["provider"].get("comparator", "")
        made.pricing = story["provider"].get("pricing") or {}
        for one in story["nodeGroups"]:
            made.add_group(one)
        for one in story["cluster"]["nodes"]:
            made.put("Node", one["node"], one.get("nodeGroup"))
        for kind, objects in (story["cluster"].get("objects") or {}).items():
            for one in objects:
                made.put(kind, one)
        return made

    @property
    def pods(self) -> dict[Key, Json]:
        return self.objects.setdefault("Pod", {})

    def listed(self, kind: str) -> list[Json]:
        """Objects of a kind in order of namespace and name."""
        return [one for _, one in sorted(self.objects.get(kind, {}).items())]

    @property
    def namespaces(self) -> dict[str, dict[str, str]]:
        """Labels of each Namespace."""
        return {
            one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in self.listed("Namespace")
        }

    def pods_on(self, node: str) -> list[Json]:
        return [one for one in self.listed("Pod") if one["spec"].get("nodeName") == node]

    def group_of_node(self, node: Json) -> Group | None:
        name = self.group_of.get(node["spec"].get("providerID", ""))
        return self.groups.get(name) if name is not None else None

    def has_machine(self, node: Json) -> bool:
        group = self.group_of_node(node)
        return group is not None and node["spec"]["providerID"] in group.machines

    # ── what a story changes ──

    def add_group(self, one: Json) -> None:
        group = Group(
            one["id"],
            one["min"],
            one["max"],
            one["targetSize"],
            one.get("template"),
            one.get("templatePods") or [],
            one.get("options") or {},
            exists=one.get("exists", True),
        )
        self.groups[group.id] = group
        for machine in one.get("instances") or ():
            self.put_machine(group.id, machine)

    def put_machine(self, group: str, one: Json) -> None:
        self.group_of[one["id"]] = group
        self.groups[group].machines[one["id"]] = Machine(
            one["id"],
            one.get("state", "running"),
            one.get("errorClass", ""),
            one.get("errorCode", ""),
            one.get("errorMessage", ""),
        )

    def put(self, kind: str, one: Json, group: str | None = None) -> None:
        meta = one["metadata"]
        if kind != "Node":
            self.objects.setdefault(kind, {})[(meta.get("namespace", ""), meta["name"])] = one
            return
        self.nodes[meta["name"]] = one
        if group and one["spec"]["providerID"] not in self.groups[group].machines:
            self.put_machine(group, {"id": one["spec"]["providerID"]})

    def apply(self, change: Json) -> None:
        op = change["op"]
        if op in ("add", "update"):
            self.put(change["kind"], change["object"], change.get("nodeGroup") if op == "add" else None)
        elif op == "delete" and change["kind"] == "Node":
            self.nodes.pop(change["name"], None)
        elif op == "delete":
            self.objects.get(change["kind"], {}).pop((change.get("namespace", ""), change["name"]), None)
        elif op in ("addInstance", "setInstance"):
            self.put_machine(change["nodeGroup"], change["instance"])
        elif op == "removeInstance":
            self.groups[change["nodeGroup"]].machines.pop(change["id"], None)
        elif op == "setGroup":
            group = self.groups[change["nodeGroup"]]
            group.target = change.get("size", group.target)
            group.min = change.get("min", group.min)
            group.max = change.get("max", group.max)
        elif op == "addNodeGroup":
            self.add_group(change["group"])
        elif op == "increaseSizeError":
            self.increase_errors[change["nodeGroup"]] = change.get("message", "")
        elif op == "deleteNodesError":
            self.delete_errors[change["nodeGroup"]] = change.get("message", "")
        elif op == "evictionError":
            self.eviction_errors[change["namespace"], change["name"]] = change["count"]
        else:
            raise ValueError(f"the reference knows no change {op}")

    def may_evict(self, pod: Key) -> bool:
        """Return what the API server answers to an eviction of a pod, which counts."""
        left = self.eviction_errors.get(pod, 0)
        self.eviction_errors[pod] = left - (left > 0)
        return left == 0

    # ── the cloud's calls ──

    def increase(self, group_id: str, delta: int) -> None:
        group = self.groups[group_id]
        if self.increase_errors.get(group_id):
            raise CloudRefusal(self.increase_errors[group_id])
        if group.target + delta > group.max:
            raise CloudRefusal("size increase too large")
        group.target += delta

    def delete_machines(self, group_id: str, ids: list[str]) -> None:
        group = self.groups[group_id]
        if self.delete_errors.get(group_id):
            raise CloudRefusal(self.delete_errors[group_id])
        for one in ids:
            if group.machines.pop(one, None) is not None:
                group.target -= 1

    def decrease(self, group_id: str, delta: int) -> None:
        group = self.groups[group_id]
        if delta >= 0:
            raise CloudRefusal("delta must be negative")
        if group.target + delta < len(group.machines):
            raise CloudRefusal("attempt to delete existing nodes")
        group.target += delta
