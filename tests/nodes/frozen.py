"""A small world for scale-up decisions: objects, a reliable cloud, and the steps over them."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import (
    AskExpander,
    DecreaseTarget,
    DeleteInstances,
    IncreaseSize,
    Outcome,
    Outcomes,
)
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, Gone, State
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet
from kubetide.ports.cloud import Instance, NodeGroup, NodeTemplate
from kubetide.testing import builders
from kubetide.units.time import ZERO, Duration, Instant, after, before, format_rfc3339, hours, parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
LONG_AGO = format_rfc3339(before(START, hours(2)))
TAINTED = {
    "taints": [{"key": "ToBeDeletedByClusterAutoscaler", "value": "1772438400", "effect": "NoSchedule"}]
}
"""The spec of a node that is to be deleted."""


def convert(body, model):
    return msgspec.convert(body, model)


def owner(kind="ReplicaSet", name="web"):
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def pod(name, *, cpu="100m", memory="64Mi", node="", of="web", kind="ReplicaSet", created=LONG_AGO, **extra):
    """Return a pod of a ReplicaSet: on a node, or given up by the scheduler."""
    unscheduled = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
    body = builders.pod(
        name,
        namespace="default",
        labels={"app": of},
        cpu=cpu,
        memory=memory,
        owners=(owner(kind, of),) if kind else (),
        extra={
            "metadata": {"uid": f"uid-{name}", "creationTimestamp": created},
            "spec": {"nodeName": node} if node else {},
            "status": {"phase": "Running"} if node else {"phase": "Pending", "conditions": unscheduled},
        },
    )
    return convert(builders._merged(body, extra), Pod)


def pods(prefix, count, **kwargs):
    return [pod(f"{prefix}-{at}", **kwargs) for at in range(count)]


def node(name, *, cpu="4", memory="16Gi", ready=True, created=LONG_AGO, labels=None, **extra):
    state = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": created}
    body = builders.node(
        name,
        cpu=cpu,
        memory=memory,
        labels=labels,
        extra={
            "metadata": {"creationTimestamp": created},
            "spec": {"providerID": f"cloud:///{name}"},
            "status": {"conditions": [state]},
        },
    )
    return convert(builders._merged(body, extra), Node)


def lost_node(name, since, **fields):
    """Return a node that was ready once and has not been since then."""
    state = {"type": "Ready", "status": "Unknown", "lastTransitionTime": format_rfc3339(since)}
    return node(name, status={"conditions": [state]}, **fields)


def template(*, cpu="4", memory="16Gi", source="catalogue: m5.xlarge, 4 CPU, 16Gi", labels=None, **extra):
    made = node("template", cpu=cpu, memory=memory, labels=labels, **extra)
    return NodeTemplate(node=made, source=source)


def group(name, *, minimum=0, maximum=10, made=None, nodes=(), target=None, instances=(), **fields):
    known = (*(Instance(provider_id=f"cloud:///{one}") for one in nodes), *instances)
    return NodeGroup(
        id=name,
        min_size=minimum,
        max_size=maximum,
        target_size=len(known) if target is None else target,
        instances=known,
        template=template() if made is None else made,
        **fields,
    )


def deployment(name, replicas, *, cpu="100m", memory="64Mi"):
    body = builders.deployment(
        name,
        namespace="default",
        replicas=replicas,
        cpu=cpu,
        memory=memory,
        extra={"metadata": {"uid": f"uid-d-{name}"}},
    )
    return convert(body, Deployment)


def replica_set(name, replicas, *, of=None, cpu="100m", memory="64Mi"):
    owners = [owner("Deployment", of) | {"uid": f"uid-d-{of}"}] if of else []
    extra = {"metadata": {"uid": f"uid-{name}", "ownerReferences": owners}}
    body = builders.replica_set(
        name, namespace="default", replicas=replicas, cpu=cpu, memory=memory, extra=extra
    )
    return convert(body, ReplicaSet)


def daemon_set(name, *, cpu="100m", memory="64Mi"):
    body = {
        "metadata": {"name": name, "namespace": "kube-system", "uid": f"uid-{name}"},
        "spec": {
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": builders.pod_spec(cpu=cpu, memory=memory),
            }
        },
    }
    return convert(body, DaemonSet)


class World:
    """A state, the cloud's groups, and the time. ``refused`` says which groups refuse to grow, and with what text.

    The ``cause`` and the ``error_type`` are the same for all of them.
    """

    def __init__(self, *, groups=(), nodes=(), pods=(), settings=None, **objects):
        self.now = START
        self.groups = {one.id: one for one in groups}
        self.refused = {}
        self.cause, self.error_type = "Other", "cloudProviderError"
        self.events, self.commands, self.reasons, self.status = [], [], [], None
        self.state = State()
        self.state.apply(
            Delta(
                nodes=tuple(nodes),
                pods=tuple(pods),
                groups=tuple(groups),
                settings=Settings(**(settings or {})),
                **objects,
            ),
            full=True,
        )

    step_time = ZERO
    """How long each step of a tick takes, as the deltas of the later ones say it."""

    def tick(self, *, at=None, deleted_pods=(), gone_nodes=(), **changes):
        """Run all steps of one tick but those of deletions; return the actions of all of them."""
        self.now = self.now if at is None else Instant(after(START, at))
        groups = tuple(self.groups.values())
        same = groups == tuple(self.state.groups.values())
        delta = Delta(
            groups=None if same else groups,
            gone=Gone(pods=tuple(deleted_pods), nodes=tuple(gone_nodes)),
            **changes,
        )
        actions, self.commands, self.events, self.writes = [], [], [], []
        while True:
            self.state.apply(delta)
            commands = decide(self.state, self.now)
            outcomes = tuple(map(self._do, commands.actions))
            result = absorb(self.state, commands, Outcomes(outcomes), self.now)
            self.after_step(commands, outcomes)
            self.commands.append(commands)
            self.reasons = [*self.reasons, *commands.reasons, *result.reasons]
            self.events += [*commands.events, *result.events]
            self.writes += result.writes
            self.status = result.status or self.status
            actions += commands.actions
            if not commands.next_step and not result.replan:
                return actions
            step = "scale_up" if result.replan else commands.next_step
            elapsed = Duration(self.step_time * len(self.commands))
            delta = Delta(step=step, holds=self.state.holds, elapsed=elapsed)

    def after_step(self, commands, outcomes):
        """Observe a step that has ended; a subclass overrides this."""

    def increases(self, **kwargs):
        """Run a tick and return how much each group was to grow."""
        return {one.group: one.delta for one in self.tick(**kwargs) if isinstance(one, IncreaseSize)}

    def messages(self, reason):
        return sorted(event.message for event in self.events if event.reason == reason)

    def change(self, name, **fields):
        self.groups[name] = replace(self.groups[name], **fields)

    def _do(self, action):
        if isinstance(action, IncreaseSize):
            if action.group in self.refused:
                return Outcome(
                    "failed",
                    self.refused[action.group],
                    "OutOfResource",
                    "STOCKOUT",
                    self.cause,
                    self.error_type,
                )
            self.change(action.group, target_size=self.groups[action.group].target_size + action.delta)
        elif isinstance(action, DecreaseTarget):
            self.change(action.group, target_size=self.groups[action.group].target_size - action.delta)
        elif isinstance(action, DeleteInstances):
            known = self.groups[action.group]
            left = tuple(one for one in known.instances or () if one.provider_id not in action.provider_ids)
            lost = len(known.instances or ()) - len(left)
            self.change(action.group, instances=left, target_size=known.target_size - lost)
        elif isinstance(action, AskExpander):
            return Outcome(groups=action.groups)
        return Outcome()
