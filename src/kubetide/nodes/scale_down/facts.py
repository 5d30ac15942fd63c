"""What is known about each node, kept while the node and its pods stay the same.

The cache holds nothing that a decision depends on: dropping it changes only the time taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from kubetide.nodes.node_facts import deletion_window_ends
from kubetide.nodes.scale_down.drain_rules import (
    DrainContext,
    Prepared,
    PreparedPod,
    leaves_empty,
    prepare_pod,
    together,
)
from kubetide.nodes.scale_down.drain_rules.base import Owner
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.pdbs import Allowances, BudgetIndex
from kubetide.nodes.scale_down.pods import Key, key_of, long_terminating_from
from kubetide.nodes.scale_down.utilization import Utilization, UtilizationError, requests_of, utilization_of
from kubetide.nodes.settings import Settings
from kubetide.objects.meta import controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Instant

if TYPE_CHECKING:
    from kubetide.nodes.state import State

OwnerKey = tuple[str, str, str]
"""(kind, namespace, name)"""

_key = attrgetter("key")


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What holds for a node until ``valid_until``, while node, pods, owners and budgets' specs are the same.

    Whether its pods can be drained is found only for nodes that may go (``Cache.prepared``). ``pods`` are the node's own by name, whatever the order in which they came, then simulated ones.
    """

    node: Node
    seen: tuple[Pod, ...]
    pods: tuple[Pod, ...]
    utilization: Utilization | None
    error: str
    empty: bool
    valid_until: Instant | None
    ignore_daemon_sets: bool
    deleting_until: Instant | None


class Refusal(NamedTuple):
    """Why a node stays whatever its pods are, or None, while its facts and its group are the same."""

    facts: NodeFacts
    group: NodeGroup
    verdict: UnremovableNode | None


class _PodFacts:
    """What is known of a pod while it stays the same; the rules are asked when it matters."""

    __slots__ = ("_verdict", "ends", "key", "node", "owner", "pod", "requests")

    def __init__(self, pod: Pod) -> None:
        self.key = key_of(pod)
        self.pod = pod
        self.node = pod.spec.node_name
        self.ends = long_terminating_from(pod)
        self.requests = requests_of(pod)
        owner = controller_of(pod.metadata)
        self.owner = None if owner is None else (owner.kind, pod.metadata.namespace, owner.name)
        self._verdict: PreparedPod | None = None

    def verdict(self, context: DrainContext) -> PreparedPod:
        """What the rules say that do not read budgets."""
        known = self._verdict
        if known is None or (known.valid_until is not None and context.now >= known.valid_until):
            known = self._verdict = prepare_pod(self.pod, context)
        return known


class Cache:
    """Facts by node and by pod, the budget index, and the last whole evaluation.

    ``enabled`` is False only in the test that proves that it changes nothing.
    """

    def __init__(self, *, enabled: bool = True) -> None:
        self.enabled = enabled
        self.evaluation: tuple[object, object] | None = None
        self.refusals: dict[str, Refusal] = {}
        self._facts: dict[str, NodeFacts] = {}
        self._pods: dict[int, _PodFacts] = {}
        """By the identity of the pod, which none other has while its facts hold it."""
        self._index = BudgetIndex({})
        self._settings: Settings | None = None
        self._owner_keys: frozenset[OwnerKey] = frozenset()
        self._replicas: dict[Key, int | None] = {}

    def allowances(self, state: State) -> Allowances:
        """Gives what the budgets allow at the start of a plan."""
        specs = {key: pdb.spec for key, pdb in state.pdbs.items()}
        if specs != self._index.specs or not self.enabled:
            self._index = BudgetIndex(specs)
            self._forget()
        return Allowances(state.pdbs, self._index)

    def forget_stale(self, state: State) -> None:
        """Drops what no longer holds because settings or owners changed, or nodes went."""
        if state.settings is not self._settings or not self.enabled:
            self._forget()
            self._settings = state.settings
        keys = frozenset((kind, *key) for kind, known in owners_of(state).items() for key in known)
        changed = keys ^ self._owner_keys
        self._owner_keys = keys
        if state.settings.min_replica_count > 0:
            replicas = {key: owner.spec.replicas for key, owner in state.replica_sets.items()}
            differing = {
                ("ReplicaSet", *key) for key, count in replicas.items() if self._replicas.get(key) != count
            }
            changed = changed | differing
            self._replicas = replicas
        if changed:
            # Jobs come and go all day: what is known of other pods stays.
            self._facts.clear()
            self._pods = {at: known for at, known in self._pods.items() if known.owner not in changed}
        if len(self._facts) > len(state.nodes):
            self._facts = {name: known for name, known in self._facts.items() if name in state.nodes}
            self.refusals = {name: known for name, known in self.refusals.items() if name in state.nodes}
        if len(self._pods) > 2 * len(state.pods):
            self._pods.clear()

    def facts(self, state: State, name: str, context: DrainContext, *, ignore_daemon_sets: bool) -> NodeFacts:
        """Gives the facts of a node that is in the snapshot."""
        node = state.snapshot.node(name)
        seen = state.snapshot.pods_on(name)
        known = self._facts.get(name)
        if (
            known is not None
            and known.node is node
            and (known.seen is seen or known.seen == seen)
            and known.ignore_daemon_sets == ignore_daemon_sets
            and (known.valid_until is None or context.now < known.valid_until)
        ):
            return known
        facts = self._find(node, seen, context, ignore_daemon_sets=ignore_daemon_sets)
        if self.enabled:
            self._facts[name] = facts
        return facts

    def _forget(self) -> None:
        self._facts.clear()
        self._pods.clear()

    def prepared(self, facts: NodeFacts, context: DrainContext) -> Prepared:
        """Gives what the drain rules say of the node's own pods."""
        return together([self._pod(pod).verdict(context) for pod in facts.pods])

    def _pod(self, pod: Pod) -> _PodFacts:
        known = self._pods.get(id(pod))
        if known is None or not self.enabled:
            known = self._pods[id(pod)] = _PodFacts(pod)
        return known

    def _is_empty(self, known: Sequence[_PodFacts], context: DrainContext, changes: list[Instant]) -> bool:
        """Whether the node counts as empty; notes when the verdicts that say so run out."""
        for pod in known:
            verdict = pod.verdict(context)
            if verdict.valid_until is not None:
                changes.append(verdict.valid_until)
            if not leaves_empty(verdict):
                return False
        return True

    def _find(
        self, node: Node, seen: tuple[Pod, ...], context: DrainContext, *, ignore_daemon_sets: bool
    ) -> NodeFacts:
        name, settings = node.metadata.name, context.settings
        there = self._pods
        unsorted = [there.get(id(pod)) or self._pod(pod) for pod in seen]
        # As ``in_order`` does it, by what is known already.
        known = sorted((pod for pod in unsorted if pod.node == name), key=_key)
        known += [pod for pod in unsorted if pod.node != name]
        pods = tuple([pod.pod for pod in known])
        utilization, error = None, ""
        try:
            utilization = utilization_of(
                node,
                pods,
                context.now,
                gpu_label=settings.gpu_label,
                ignore_daemon_sets=ignore_daemon_sets,
                ignore_mirror_pods=settings.ignore_mirror_pods_utilization,
                requests=[pod.requests for pod in known],
            )
        except UtilizationError as unknown:
            error = str(unknown)
        changes = [Instant(pod.ends + 1) for pod in known if pod.ends is not None and pod.ends >= context.now]
        empty = self._is_empty(known, context, changes)
        return NodeFacts(
            node=node,
            seen=seen,
            pods=pods,
            utilization=utilization,
            error=error,
            empty=empty,
            valid_until=min(changes, default=None),
            ignore_daemon_sets=ignore_daemon_sets,
            deleting_until=deletion_window_ends(node),
        )


def owners_of(state: State) -> Mapping[str, Mapping[Key, Owner]]:
    """Gives the controllers that the loop watches, by kind."""
    return {
        "ReplicaSet": state.replica_sets,
        "DaemonSet": state.daemon_sets,
        "StatefulSet": state.stateful_sets,
        "Job": state.jobs,
    }


def drain_context(state: State, now: Instant, allowances: Allowances) -> DrainContext:
    """Makes the context in which drain rules are asked."""
    return DrainContext(now=now, settings=state.settings, allowances=allowances, owners=owners_of(state))
