"""A small world for scale-down: objects, a reliable cloud, and the step functions over them."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
import pytest
from msgspec.structs import replace

from kubetide.nodes.decision import AddTaint, DeleteNodes, EvictPod, Outcome, Outcomes, RemoveTaint
from kubetide.nodes.facts.slim_pods import PodSlimmer
from kubetide.nodes.scale_down.decide import absorb as absorb_scale_down
from kubetide.nodes.scale_down.decide import decide as decide_scale_down
from kubetide.nodes.scale_down.deletion.absorb_actuation import absorb_actuation
from kubetide.nodes.scale_down.deletion.actuation import actuate
from kubetide.nodes.scale_down.deletion.deletions import next_wake
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, Gone, State
from kubetide.objects.node import Node, Taint
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.workload import DaemonSet, ReplicaSet
from kubetide.ports.cloud import GroupOptions, Instance, NodeGroup
from kubetide.testing import builders
from kubetide.units.time import Instant, after, minutes, parse_rfc3339, seconds

TICK = seconds(10)
START = parse_rfc3339("2026-01-01T00:00:00Z")


def owner(kind="ReplicaSet", name="web"):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def make_pod(
    name, node, *, cpu="100m", memory="64Mi", namespace="default", kind="ReplicaSet", of="web", **extra
):
    """Return a running pod; ``kind=None`` makes a bare one."""
    body = builders.pod(
        name,
        namespace=namespace,
        cpu=cpu,
        memory=memory,
        labels={"app": of},
        owners=(owner(kind, of),) if kind else (),
        extra={
            "metadata": {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": node},
            "status": {"phase": "Running"},
        },
    )
    return msgspec.convert(builders._merged(body, extra), Pod)


def make_node(name, *, cpu="4", memory="16Gi", ready=True, **extra):
    body = builders.node(
        name, cpu=cpu, memory=memory, ready=ready, extra={"spec": {"providerID": f"cloud:///{name}"}}
    )
    return msgspec.convert(builders._merged(body, extra), Node)


def make_pdb(name, app, allowed, *, namespace="default"):
    body = builders.pdb(
        name, {"app": app}, namespace=namespace, extra={"status": {"disruptionsAllowed": allowed}}
    )
    return msgspec.convert(body, PodDisruptionBudget)


@dataclass
class World:
    """Objects by name, and how calls are answered."""

    settings: Settings = field(default_factory=Settings)
    nodes: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)
    group_of: dict = field(default_factory=dict)
    pods: dict = field(default_factory=dict)
    pdbs: dict = field(default_factory=dict)
    replica_sets: dict = field(default_factory=dict)
    daemon_sets: dict = field(default_factory=dict)
    now: Instant = START
    refused_evictions: dict = field(default_factory=dict)
    failed_taints: tuple = ()
    cloud_error: str = ""
    undeletable: tuple = ()
    """Nodes whose machines the cloud does not delete; those before them in a call are gone by then."""
    stuck_pods: tuple = ()
    slimmer: PodSlimmer = field(default_factory=PodSlimmer)
    unreadable: tuple = ()
    awaited: dict = field(default_factory=dict)
    """Group -> how many of its desired machines do not exist."""
    log: list = field(default_factory=list)
    events: list = field(default_factory=list)
    state: State | None = None

    def add_group(self, name="a", *, minimum=0, maximum=100, **options):
        self.groups[name] = NodeGroup(
            id=name, min_size=minimum, max_size=maximum, options=GroupOptions(**options) if options else None
        )
        return self

    def add_node(self, name, group="a", **fields):
        self.nodes[name] = make_node(name, **fields)
        self.group_of[name] = group
        return self

    def add_pod(self, name, node, **fields):
        pod = make_pod(name, node, **fields)
        self.pods[pod.metadata.namespace, name] = self.slimmer.keep(pod)
        kind, of = fields.get("kind", "ReplicaSet"), fields.get("of", "web")
        meta = {"metadata": {"name": of, "namespace": pod.metadata.namespace}, "spec": {"replicas": 3}}
        if kind == "ReplicaSet":
            self.replica_sets.setdefault((pod.metadata.namespace, of), msgspec.convert(meta, ReplicaSet))
        if kind == "DaemonSet":
            self.daemon_sets.setdefault((pod.metadata.namespace, of), msgspec.convert(meta, DaemonSet))
        return self

    def add_pdb(self, name, app, allowed, **fields):
        pdb = make_pdb(name, app, allowed, **fields)
        self.pdbs[pdb.metadata.namespace, name] = pdb
        return self

    # -- the steps --

    def cloud_groups(self):
        groups = []
        for name in sorted(self.groups):
            here = [node for node, group in self.group_of.items() if group == name]
            instances = tuple(Instance(provider_id=f"cloud:///{node}") for node in sorted(here))
            target = len(here) + self.awaited.get(name, 0)
            groups.append(replace(self.groups[name], target_size=target, instances=instances))
        return tuple(groups)

    def sync(self, step, live=None):
        """Bring the state up to date, from scratch the first time."""
        full = self.state is None
        if full:
            self.state = State()
        known_nodes = {} if full else self.state.nodes
        known_pods = {} if full else self.state.pods
        delta = Delta(
            step="update",
            nodes=tuple(node for name, node in self.nodes.items() if known_nodes.get(name) is not node),
            pods=tuple(pod for key, pod in self.pods.items() if known_pods.get(key) is not pod),
            replica_sets=tuple(self.replica_sets.values()) if full else (),
            daemon_sets=tuple(self.daemon_sets.values()) if full else (),
            pdbs=tuple(pdb for key, pdb in self.pdbs.items() if full or self.state.pdbs.get(key) is not pdb),
            gone=Gone(
                nodes=tuple(name for name in known_nodes if name not in self.nodes),
                pods=tuple(key for key in known_pods if key not in self.pods),
            ),
            groups=self.cloud_groups()
            if full or self.cloud_groups() != tuple(self.state.groups.values())
            else None,
            settings=self.settings if full else None,
        )
        self.state.apply(delta, full=full)
        self.state.apply(Delta(step=step, live_pods=live))

    def loop(self, advance=TICK):
        """One scale-down step, ``advance`` later."""
        self.now = after(self.now, advance)
        self.sync("scale_down")
        commands = decide_scale_down(self.state, self.now)
        result = absorb_scale_down(self.state, commands, self.answer(commands.actions), self.now)
        self.events += result.events
        return commands

    def settle(self, until):
        """Let deletions go on for so long, as the controller would."""
        end = after(self.now, until)
        memory = self.state.memory.scale_down
        while (wake := next_wake(memory.deletions)) is not None and wake <= end:
            self.now = max(self.now, wake)
            live = {}
            for _ in range(20):
                self.sync("actuate", live)
                commands = actuate(self.state, self.now)
                live = {
                    name: tuple(pod for pod in self.pods.values() if pod.spec.node_name == name)
                    for name in commands.read_pods
                    if name not in self.unreadable
                }
                result = absorb_actuation(self.state, commands, self.answer(commands.actions), self.now)
                self.events += (*commands.events, *result.events)
                if not commands.actions and not commands.read_pods:
                    break
            assert next_wake(memory.deletions) != self.now, "no progress"
        self.now = end
        self.sync("actuate")
        return self

    def answer(self, actions):
        return Outcomes(tuple(self._answer(action) for action in actions))

    def _answer(self, action):
        match action:
            case AddTaint():
                if action.node in self.failed_taints and action.key.startswith("ToBe"):
                    return Outcome("failed", "api down")
                taint = Taint(key=action.key, value=action.value, effect=action.effect)
                self._retaint(action.node, action.key, (taint,), cordon=action.cordon or None)
            case RemoveTaint():
                self._retaint(action.node, action.key, (), cordon=False if action.uncordon else None)
            case EvictPod():
                key = (action.namespace, action.name)
                left = self.refused_evictions.get(key, 0)
                if left:
                    self.refused_evictions[key] = left - 1
                    return Outcome(
                        "failed", "Cannot evict pod as it would violate the pod's disruption budget."
                    )
                self.log.append(("evict", action.name, action.grace_period_s))
                if key not in self.stuck_pods:
                    del self.pods[key]
                return Outcome()
            case DeleteNodes():
                if self.cloud_error:
                    return Outcome("failed", self.cloud_error)
                for name in action.nodes:
                    if name in self.undeletable:
                        return Outcome("failed", "throttled")
                    self.log.append(("delete", name))
                    del self.group_of[name]
                    self.nodes.pop(name, None)
                    self.pods = {key: pod for key, pod in self.pods.items() if pod.spec.node_name != name}
        return Outcome()

    def _retaint(self, name, key, more, *, cordon):
        node = self.nodes[name]
        taints = tuple(taint for taint in node.spec.taints or () if taint.key != key) + more
        cordoned = node.spec.unschedulable if cordon is None else cordon
        self.nodes[name] = replace(node, spec=replace(node.spec, taints=taints, unschedulable=cordoned))

    # -- looking --

    @property
    def status(self):
        return self.state.memory.scale_down.status

    def verdicts(self):
        return {one.node: one.blocking_reason or one.reason for one in self.status.unremovable}

    def tainted(self, key="DeletionCandidateOfClusterAutoscaler"):
        return [
            name
            for name in sorted(self.nodes)
            if any(taint.key == key for taint in self.nodes[name].spec.taints or ())
        ]

    def messages(self):
        return [event.message for event in self.events]


@pytest.fixture(scope="session")
def world():
    """Makes worlds: ``world(scale_down_unneeded_time=...)``."""

    def make(**settings):
        defaults = {"scale_down_delay_after_add": seconds(0), "scale_down_unneeded_time": minutes(2)}
        return World(settings=Settings(**{**defaults, **settings}))

    return make


@pytest.fixture(scope="session")
def pod():
    return make_pod


@pytest.fixture(scope="session")
def node():
    return make_node


@pytest.fixture(scope="session")
def pdb():
    return make_pdb
