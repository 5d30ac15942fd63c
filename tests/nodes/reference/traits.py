"""What only some random lives have: GPUs, taints that the flags name, another scheduler, controllers short of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from tests.nodes.reference.accelerators import LABEL, RESOURCE, lacks_accelerator
from tests.nodes.reference.world import Json

KINDS = ("tesla-a", "tesla-b")
OTHER_SCHEDULER = "my-sched"
SCHEDULERS: tuple[Json, ...] = (
    {"bypassed-scheduler-names": OTHER_SCHEDULER},
    {"allowed-scheduler-names": "default-scheduler"},
    {"allowed-scheduler-names": OTHER_SCHEDULER, "bypassed-scheduler-names": OTHER_SCHEDULER},
    {"allowed-scheduler-names": f"default-scheduler,{OTHER_SCHEDULER}"},
)
UNPROCESSED: tuple[list[Json], ...] = (
    [],
    [{"type": "PodScheduled", "status": "False"}],
    [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
)
TAINT_FLAGS: Mapping[str, list[str]] = {
    "startup-taint": ["boot", "warmup"],
    "startup-taint-prefix": ["init.example.com/"],
    "status-taint": ["busy"],
}
TAINTS = (
    "boot",
    "init.example.com/disk",
    "busy",
    "startup-taint.cluster-autoscaler.kubernetes.io/x",
    "ignore-taint.cluster-autoscaler.kubernetes.io/x",
    "status-taint.cluster-autoscaler.kubernetes.io/x",
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/memory-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "NodeWithImpairedVolumes",
)
"""Some of them count as any other taint where the flag is not given."""


@dataclass
class Traits:
    """Each is rare, so that the other lives stay plain."""

    random: Random
    accelerated: bool = False
    tainted: bool = False
    two_schedulers: bool = False
    proactive: bool = False

    @classmethod
    def drawn(cls, draw: Random, options: Json) -> Traits:
        """Draw the traits of a life, and add the flags that go with them."""
        made = cls(draw, *(draw.random() < 0.1 for _ in range(4)))
        if made.slow_to_start:
            options.pop("max-node-provision-time", None)
        if made.accelerated:
            limits = draw.sample(("tesla-a:0:6", "tesla-b:2:4", "tesla-a:3:9"), draw.choice((0, 1, 2)))
            options |= _some(draw, {"gpu-total": limits, "scale-down-gpu-utilization-threshold": 0.9})
        if made.tainted:
            options |= _some(draw, TAINT_FLAGS)
        if made.two_schedulers:
            options |= draw.choice(SCHEDULERS)
        if made.proactive:
            options["enable-proactive-scaleup"] = "true"
            options |= _some(draw, {"pod-injection-limit": draw.choice((3, 8))})
        return made

    @property
    def slow_to_start(self) -> bool:
        """Return whether new nodes may join and yet take no pods for a while.

        Such lives have no short times for nodes to start: once the time is over, upstream buys the same nodes again, while
        production backs the group off for such pods.
        """
        return self.accelerated or self.tainted

    def shape(self) -> Json:
        """Return what the machines of a group have beside the usual."""
        if not self.accelerated or self.random.random() < 0.4:
            return {}
        return {"accelerators": self.random.choice((1, 2, 4)), "kind": self.random.choice(KINDS)}

    def template(self) -> Json:
        """Return what the pods of a workload ask for beside the usual."""
        if not self.accelerated or self.random.random() < 0.4:
            return {}
        return {"accelerators": self.random.choice((1, 1, 2))}

    def scheduler(self) -> Json:
        """Return the scheduler of a workload's pods, as a field of their specs, if it is not the usual one."""
        other = self.two_schedulers and self.random.random() < 0.5
        return {"schedulerName": OTHER_SCHEDULER} if other else {}

    def owner(self, kind: str) -> Json:
        """Return how many pods an owner wants, as fields of its spec."""
        draw = self.random
        if not self.proactive:
            return {}
        if kind == "Job":
            return _some(draw, {"parallelism": draw.randint(0, 8), "completions": draw.randint(1, 20)})
        policy = {"podManagementPolicy": draw.choice(("Parallel", "Parallel", "OrderedReady"))}
        return {"replicas": draw.randint(0, 15), **(policy if kind == "StatefulSet" else {})}

    def mark_pod(self, pod: Json) -> None:
        """Let a few pods wait for the other scheduler to look at them."""
        if pod["spec"]["schedulerName"] == OTHER_SCHEDULER and self.random.random() < 0.6:
            pod["status"]["conditions"] = [dict(one) for one in self.random.choice(UNPROCESSED)]

    def mark_node(self, node: Json, share: float) -> None:
        """Let a node start with a taint or without its GPUs, with the probability that `share` tells."""
        if self.tainted and self.random.random() < share:
            self._taint(node)
        if self.accelerated and RESOURCE in node["status"]["allocatable"] and self.random.random() < share:
            if self.random.random() < 0.5:
                del node["status"]["allocatable"][RESOURCE]
            else:
                node["status"]["allocatable"][RESOURCE] = "0"

    def change_node(self, node: Json) -> bool:
        """Let a node get its GPUs, or a taint come or go; return whether anything changed."""
        draw = self.random
        if self.accelerated and lacks_accelerator(node) and draw.random() < 0.7:
            node["status"]["allocatable"][RESOURCE] = node["status"]["capacity"][RESOURCE]
            return True
        if not self.tainted:
            return False
        spec = node["spec"]
        left = [one for one in spec.get("taints", ()) if one["key"] not in TAINTS]
        if len(left) < len(spec.get("taints", ())):
            if draw.random() < 0.7:
                spec["taints"] = left
                return True
        elif draw.random() < 0.06:
            self._taint(node)
            return True
        return False

    def _taint(self, node: Json) -> None:
        effect = self.random.choice(("NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"))
        taint = {"key": self.random.choice(TAINTS), "value": "", "effect": effect}
        node["spec"]["taints"] = [*node["spec"].get("taints", ()), taint]


def labels(shape: Json) -> dict[str, str]:
    """Return the labels that a machine has because of its GPUs."""
    return {LABEL: shape["kind"]} if "kind" in shape else {}


def affinity(draw: Random) -> Json:
    """Draw a required affinity to nodes by the label `pool`, which only some have."""
    part: dict[str, Any] = {"key": "pool", "operator": draw.choice(("In", "NotIn", "Exists", "DoesNotExist"))}
    if part["operator"] in ("In", "NotIn"):
        part["values"] = draw.choice((["one"], ["two"], ["one", "two"]))
    terms = [{"matchExpressions": [part]}]
    if draw.random() < 0.3:
        other = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["z-a", "z-b"]}
        if draw.random() < 0.5:
            terms.append({"matchExpressions": [other]})
        else:
            terms[0]["matchExpressions"].append(other)
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _some(draw: Random, options: Mapping[str, Any]) -> Json:
    return {name: value for name, value in options.items() if draw.random() < 0.7}
