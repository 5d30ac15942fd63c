"""Which pods of a lower priority give way to a pod that fits nowhere.

Source: kube-scheduler 1.36, plugin DefaultPreemption. Nodes that refuse the pod for what runs on them are looked at, until a
tenth of them, and at least 100, would do; here in the order of the snapshot, there from a random one on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from kubetide.embedded.controllers.scheduling.why_nowhere import NO_VICTIMS
from kubetide.objects.meta import Key, key_of
from kubetide.objects.pod import Pod, priority_of
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.scheduling import PodClass, Snapshot
from kubetide.units.selectors import Selector

_MIN_CANDIDATE_NODES = 100
_MIN_CANDIDATE_NODES_PERCENT = 10
_ABOVE_ANY_PRIORITY = 1 << 31
_NOT_STARTED = "~"
"""Later than any time."""


class Preemption(NamedTuple):
    """A node, and the pods on it that are deleted, the most important one first; none where they are being deleted already."""

    node: str
    victims: tuple[Pod, ...] = ()


class NoCandidates(NamedTuple):
    """Why no pods give way.

    Attributes:
        nodes: How many were looked at.
        reasons: Reason to the number of them that give it.
    """

    nodes: int
    reasons: Mapping[str, int]


class _Candidate(NamedTuple):
    node: str
    victims: tuple[Pod, ...]
    violations: int


def find_preemption(
    snapshot: Snapshot,
    pod_class: PodClass,
    priority: int,
    *,
    pods: Mapping[Key, Pod],
    budgets: Collection[PodDisruptionBudget],
) -> Preemption | NoCandidates:
    """Return the node on which preemption does least harm, or why it helps nowhere.

    Args:
        snapshot: With no pods but those on nodes, and those nominated that the pod may not displace; unchanged afterwards.
        pods: The pods as they are now.
    """
    rows = np.flatnonzero(snapshot.diagnose(pod_class).resolvable).tolist()
    names = [snapshot.node_names[row] for row in rows]
    enough = max(_MIN_CANDIDATE_NODES, len(names) * _MIN_CANDIDATE_NODES_PERCENT // 100)
    found: list[_Candidate] = []
    reasons: Counter[str] = Counter()
    for node in names:
        lower = {
            key: pods.get(key, placed)
            for key, placed, _ in snapshot.placed_on(node)
            if priority_of(placed) < priority
        }
        candidate = _without(snapshot, pod_class, node, lower, budgets) if lower else (NO_VICTIMS,)
        if not isinstance(candidate, _Candidate):
            reasons.update(candidate)
            continue
        found.append(candidate)
        if len(found) >= enough and any(not one.violations for one in found):
            break
    if not found:
        return NoCandidates(len(names), reasons)
    best = min(found, key=_harm)
    # Of equals the one whose most important victims started last.
    equal = [one for one in found if _harm(one) == _harm(best)]
    best = max(equal, key=_start_of_most_important)
    return Preemption(best.node, best.victims)


def _without(
    snapshot: Snapshot,
    pod_class: PodClass,
    node: str,
    lower: Mapping[Key, Pod],
    budgets: Collection[PodDisruptionBudget],
) -> _Candidate | tuple[str, ...]:
    """Return the fewest pods of a lower priority that must go, or why the pod does not even fit without all of them."""
    snapshot.fork()
    try:
        for key in lower:
            snapshot.remove_pod(key)
        if not snapshot.fits(pod_class, node):
            refusal = snapshot.first_refusal(pod_class, node)
            return () if refusal is None else refusal.reasons
        important = sorted(lower.values(), key=lambda pod: (*_importance(pod), key_of(pod)))
        violating = _violating(important, budgets)
        victims, violations = list[Pod](), 0
        for breaks in (True, False):
            for pod in important:
                if (key_of(pod) in violating) != breaks:
                    continue
                snapshot.add_pod(pod, node)
                if not snapshot.fits(pod_class, node):
                    snapshot.remove_pod(key_of(pod))
                    victims.append(pod)
                    violations += breaks
        return _Candidate(node, tuple(sorted(victims, key=_importance)), violations) if victims else ()
    finally:
        snapshot.revert()


def _violating(pods: Sequence[Pod], budgets: Collection[PodDisruptionBudget]) -> set[Key]:
    """Return the pods that no budget allows to go any more, if all before them go."""
    allowed = [budget.status.disruptions_allowed for budget in budgets]
    found = set()
    for pod in pods:
        for at, budget in enumerate(budgets):
            if _covers(budget, pod) and pod.metadata.name not in (budget.status.disrupted_pods or {}):
                allowed[at] -= 1
                if allowed[at] < 0:
                    found.add(key_of(pod))
    return found


def _covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Return whether the budget's selector means the pod; an empty one means none, unlike in evictions."""
    if budget.metadata.namespace != pod.metadata.namespace or not pod.metadata.labels:
        return False
    selector = Selector.from_object(budget.spec.selector)
    return bool(selector.requirements) and selector.matches(pod.metadata.labels)


def _harm(candidate: _Candidate) -> tuple[int, int, int, int]:
    """Return what is to be least: budgets broken, the highest priority, the sum of priorities, the number of victims."""
    priorities = [priority_of(pod) for pod in candidate.victims]
    total = sum(one + _ABOVE_ANY_PRIORITY for one in priorities)
    return candidate.violations, priorities[0], total, len(priorities)


def _start_of_most_important(candidate: _Candidate) -> str:
    highest = priority_of(candidate.victims[0])
    return min(_start(pod) for pod in candidate.victims if priority_of(pod) == highest)


def _importance(pod: Pod) -> tuple[int, str]:
    return -priority_of(pod), _start(pod)


def _start(pod: Pod) -> str:
    return pod.status.start_time or _NOT_STARTED
