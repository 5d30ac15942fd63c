"""Facts about each node, cached while the node and its pods are unchanged.

The cache holds nothing that a decision depends on: dropping it changes only the time taken.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from kubetide.nodes.facts.node_devices import NodeDevices, held_by
from kubetide.nodes.facts.nodes import deletion_window_ends
from kubetide.nodes.scale_down.drain_rules import (
    LAST_RANK,
    DrainContext,
    Prepared,
    Verdict,
    combine_verdicts,
    removal_rank,
    verdict_on,
)
from kubetide.nodes.scale_down.drain_rules.base import Owner
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.names import KUBE_SYSTEM
from kubetide.nodes.scale_down.pods import long_terminating_from
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances, BudgetIndex
from kubetide.nodes.scale_down.unneeded.utilization import (
    Utilization,
    UtilizationError,
    requests_of,
    utilization_of,
)
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import Key, controller_of, key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.resource import ResourceSlice
from kubetide.objects.workload import ReplicaSet, ReplicationController
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import PodClass, Snapshot
from kubetide.scheduling.devices.offers import DeviceId
from kubetide.units.time import Instant

OwnerKey = tuple[str, str, str]
"""(kind, namespace, name)"""

Owners = Mapping[str, Mapping[Key, Owner]]
"""Controllers by kind, and by namespace and name."""

_FEW_KINDS = 1_024


class NodeFacts(msgspec.Struct, frozen=True):
    """Facts that hold until ``valid_until``, while node, pods, owners and budgets' specs are unchanged.

    Whether its pods can be drained is found only for nodes that may go (``Cache.prepared``). ``pods`` are the node's own by name, whatever the order in which they came, then simulated ones.
    ``rank`` says which nodes are tried first: 0 for an empty one, 1 if its pods must end by themselves, 2 for others.
    """

    node: Node
    seen: tuple[Pod, ...]
    pods: tuple[Pod, ...]
    utilization: Utilization | None
    error: str
    rank: int
    valid_until: Instant | None
    ignore_daemon_sets: bool
    deleting_until: Instant | None


class Refusal(NamedTuple):
    """Why a node stays whatever its pods are, or None; holds while its facts and its group are unchanged."""

    facts: NodeFacts
    group: NodeGroup
    verdict: UnremovableNode | None


class _Alike:
    """What is known of pods that are the same to every rule; the rules are asked when it matters."""

    __slots__ = ("_verdict", "owner", "pod")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        owner = controller_of(pod.metadata)
        self.owner = None if owner is None else (owner.kind, pod.metadata.namespace, owner.name)
        self._verdict: Verdict | None = None

    def verdict(self, context: DrainContext) -> Verdict:
        """Return what the rules say that do not read budgets."""
        known = self._verdict
        if known is None or (known.valid_until is not None and context.now >= known.valid_until):
            known = self._verdict = verdict_on(self.pod, context)
        return known


class Cache:
    """Facts by node and by pod kind, the budget index, and the last complete evaluation.

    ``enabled`` is False only in the test that proves that it changes nothing.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.evaluation: tuple[object, object] | None = None
        self.open_evaluation: object | None = None
        """The evaluation of this tick, of which a part is done."""
        self.refusals: dict[str, Refusal] = {}
        self.candidates: object | None = None
        self.generation = 0
        """Another number after all facts were dropped."""
        self._facts: dict[str, NodeFacts] = {}
        self._alike: dict[Hashable, _Alike] = {}
        self._most_alike = _FEW_KINDS
        self._index = BudgetIndex({})
        self._settings: Settings | None = None
        self._owner_keys: frozenset[OwnerKey] = frozenset()
        self._owner_kinds = 0
        self._owners_version = -1
        self._replicas: dict[OwnerKey, int | None] = {}
        self._devices = NodeDevices((), None)

    def allowances(self, pdbs: Mapping[Key, PodDisruptionBudget]) -> Allowances:
        """Return what the budgets allow at the start of a plan."""
        specs = {key: pdb.spec for key, pdb in pdbs.items()}
        if specs != self._index.specs or not self.enabled:
            self._index = BudgetIndex(specs)
            self._forget()
        return Allowances(pdbs, self._index)

    def forget_stale(
        self,
        settings: Settings,
        owners: Owners,
        owners_version: int,
        devices: NodeDevices,
        nodes: Mapping[str, Node],
        pods: Mapping[Key, Pod],
    ) -> None:
        """Drop facts that changed settings, owners or devices, or gone nodes and pods, made stale."""
        if settings is not self._settings or not self.enabled:
            self._forget()
            self._settings = settings
        if len(owners) != self._owner_kinds:
            self._forget()
            self._owner_kinds = len(owners)
        if owners_version != self._owners_version or not self.enabled:
            self._owners_version = owners_version
            self._forget_owners(settings, owners)
        if devices is not self._devices or not self.enabled:
            self._devices = devices
            self._drop_facts()
        if len(self._facts) > len(nodes):
            self._facts = {name: known for name, known in self._facts.items() if name in nodes}
            self.refusals = {name: known for name, known in self.refusals.items() if name in nodes}
        if len(self._alike) > self._most_alike:
            self._alike = {
                kind: known for kind, known in self._alike.items() if pods.get(key_of(known.pod)) is known.pod
            }
            self._most_alike = _FEW_KINDS + 2 * len(self._alike)

    def _forget_owners(self, settings: Settings, owners: Owners) -> None:
        """Drop what no longer holds because owners came, went, or have other numbers of replicas."""
        keys = frozenset((kind, *key) for kind, known in owners.items() for key in known)
        changed = keys ^ self._owner_keys
        self._owner_keys = keys
        if settings.min_replica_count > 0:
            replicas: dict[OwnerKey, int | None] = {
                (kind, *key): owner.spec.replicas
                for kind, known in owners.items()
                for key, owner in known.items()
                if isinstance(owner, ReplicaSet | ReplicationController)
            }
            differing = {key for key, count in replicas.items() if self._replicas.get(key) != count}
            changed = changed | differing
            self._replicas = replicas
        if changed:
            # Jobs come and go all day: what is known of other pods stays.
            self._drop_facts()
            self._alike = {kind: known for kind, known in self._alike.items() if known.owner not in changed}

    def facts(
        self, snapshot: Snapshot, name: str, context: DrainContext, *, ignore_daemon_sets: bool
    ) -> NodeFacts:
        """Return the facts of a node in the snapshot."""
        node = snapshot.node(name)
        seen = snapshot.pods_on(name)
        known = self._facts.get(name)
        if (
            known is not None
            and known.node is node
            and (known.seen is seen or known.seen == seen)
            and known.ignore_daemon_sets == ignore_daemon_sets
            and (known.valid_until is None or context.now < known.valid_until)
        ):
            return known
        placed = snapshot.placed_on(name)
        slices = self._devices.local(name)
        held = held_by(snapshot.devices, seen) if slices and snapshot.devices else frozenset()
        facts = self._find(
            node,
            seen,
            placed,
            context,
            slices,
            held,
            minor=snapshot.facts.minor,
            ignore_daemon_sets=ignore_daemon_sets,
        )
        if self.enabled:
            self._facts[name] = facts
        return facts

    def _drop_facts(self) -> None:
        self._facts.clear()
        self.generation += 1

    def _forget(self) -> None:
        self._drop_facts()
        self._alike.clear()

    def prepared(self, facts: NodeFacts, context: DrainContext) -> Prepared:
        """Return the drain rules' answers about the node's own pods."""
        return combine_verdicts(facts.pods, [self._verdict(pod, context) for pod in facts.pods])

    def _verdict(self, pod: Pod, context: DrainContext) -> Verdict:
        if not self.enabled:
            return verdict_on(pod, context)
        kind = _kind_of(pod)
        known = self._alike.get(kind)
        if known is None:
            known = self._alike[kind] = _Alike(pod)
        return known.verdict(context)

    def _rank(self, pods: Sequence[Pod], context: DrainContext, changes: list[Instant]) -> int:
        """Return the rank of a node with these pods; notes when the verdicts that say so run out."""
        found = 0
        for pod in pods:
            verdict = self._verdict(pod, context)
            if verdict.valid_until is not None:
                changes.append(verdict.valid_until)
            found = max(found, removal_rank(pod, verdict, context))
            if found == LAST_RANK:
                break
        return found

    def _find(
        self,
        node: Node,
        seen: tuple[Pod, ...],
        placed: list[tuple[Key, Pod, PodClass]],
        context: DrainContext,
        slices: tuple[ResourceSlice, ...],
        held: frozenset[DeviceId],
        *,
        minor: int,
        ignore_daemon_sets: bool,
    ) -> NodeFacts:
        name, settings = node.metadata.name, context.settings
        # As ``in_order`` does it; no two keys are equal.
        known = sorted([one for one in placed if one[1].spec.node_name == name])
        if len(known) < len(placed):
            known += [one for one in placed if one[1].spec.node_name != name]
        pods = seen if known == placed else tuple([pod for _, pod, _ in known])
        utilization, error = None, ""
        try:
            utilization = utilization_of(
                node,
                pods,
                context.now,
                gpu_label=settings.gpu_label,
                ignore_daemon_sets=ignore_daemon_sets,
                ignore_mirror_pods=settings.ignore_mirror_pods_utilization,
                requests=[requests_of(pod, minor, pod_class) for _, pod, pod_class in known],
                slices=slices,
                held=held,
            )
        except UtilizationError as unknown:
            error = str(unknown)
        ends = [long_terminating_from(pod) for pod in pods if pod.metadata.deletion_timestamp is not None]
        changes = [Instant(end + 1) for end in ends if end is not None and end >= context.now]
        rank = self._rank(pods, context, changes)
        return NodeFacts(
            node=node,
            seen=seen,
            pods=pods,
            utilization=utilization,
            error=error,
            rank=rank,
            valid_until=min(changes, default=None),
            ignore_daemon_sets=ignore_daemon_sets,
            deleting_until=deletion_window_ends(node),
        )


def _kind_of(pod: Pod) -> Hashable:
    """Return what is equal for pods that the rules treat alike: those of one template share these parts.

    Parts are distinguished by identity, which none other has while what is known of them holds a pod with them.
    Of pods that are being deleted and of system pods the times count as well, so each is its own kind.
    """
    meta, spec = pod.metadata, pod.spec
    if meta.deletion_timestamp is not None or meta.namespace == KUBE_SYSTEM:
        return id(pod)
    return (
        meta.namespace,
        id(meta.labels),
        id(meta.annotations),
        id(meta.owner_references),
        id(spec.volumes),
        spec.restart_policy,
        pod.status.phase,
    )
