"""Evaluates the drain rules for a pod, and for all pods of a node.

Most rules read only the pod, its owners and the time, so what they say is found once (``prepare``)
and cached while those stay the same; the rules that read budgets are asked each time (``settle``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.scale_down.drain_rules.base import DRAIN, Answer, DrainContext, Rule
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant


class Blocked(msgspec.Struct, frozen=True):
    """The first pod that blocks the removal, and why."""

    pod: Pod
    answer: Answer
    rule: str


class Moves(msgspec.Struct, frozen=True):
    """What removing the node requires, or why it is blocked.

    Attributes:
        pods: Pods that need another place, in the node's order.
        daemon_pods: DaemonSet pods; they end with the node, evicted if the flags say so.
        waiting: Pods that must end by themselves before the node goes; they need no other place.
        skipped: Pods that should have ended by now: they need no other place, but a drain evicts them with the others.
        blocked: The first pod that keeps the node; then the others are not complete.
    """

    pods: tuple[Pod, ...] = ()
    daemon_pods: tuple[Pod, ...] = ()
    waiting: tuple[Pod, ...] = ()
    skipped: tuple[Pod, ...] = ()
    blocked: Blocked | None = None


class Verdict(msgspec.Struct, frozen=True):
    """The answer of the rules about a pod, as far as it does not depend on budgets.

    Attributes:
        answer: None when the rest must be asked each time.
        rule: Index of the rule that answered; or of the first that must be asked each time.
        valid_until: At this moment or later it must be found anew; None for never.
        of_node: Whether the pod belongs to its node: a DaemonSet's, or a mirror.
    """

    answer: Answer | None
    rule: int
    valid_until: Instant | None
    of_node: bool


class Prepared(msgspec.Struct, frozen=True):
    """The answers of the rules about a node's pods, as far as they do not depend on budgets.

    ``verdicts`` are in the order of ``pods``.
    ``valid_until``: at this moment or later it must be found anew; None for never.
    """

    pods: tuple[Pod, ...]
    verdicts: tuple[Verdict, ...]
    valid_until: Instant | None


def evaluate(pod: Pod, context: DrainContext, rules: Sequence[Rule] | None = None) -> tuple[Answer, str]:
    """Return the first answer of the rules (None: of all) and the rule's name; DRAIN and "" if none blocks."""
    for rule in context.rules if rules is None else rules:
        answer = rule.check(pod, context)
        if answer is not None:
            return answer, rule.name
    return DRAIN, ""


def verdict_on(pod: Pod, context: DrainContext) -> Verdict:
    """Return the first answer of the rules that do not read budgets."""
    changes: list[Instant] = []
    of_node = is_daemon_set_pod(pod) or is_mirror_pod(pod)
    for index, rule in enumerate(context.rules):
        if rule.uses_allowance:
            return Verdict(None, index, min(changes, default=None), of_node)
        if rule.changes_at is not None:
            change = rule.changes_at(pod, context)
            if change is not None and change > context.now:
                changes.append(change)
        answer = rule.check(pod, context)
        if answer is not None:
            return Verdict(answer, index, min(changes, default=None), of_node)
    return Verdict(DRAIN, len(context.rules) - 1, min(changes, default=None), of_node)


def combine_verdicts(pods: Sequence[Pod], verdicts: Sequence[Verdict]) -> Prepared:
    """Return the verdicts on a node's pods combined."""
    changes = [verdict.valid_until for verdict in verdicts if verdict.valid_until is not None]
    return Prepared(tuple(pods), tuple(verdicts), min(changes, default=None))


def prepare(pods: Sequence[Pod], context: DrainContext) -> Prepared:
    """Return, per pod, the first answer of the rules that do not read budgets."""
    return combine_verdicts(pods, [verdict_on(pod, context) for pod in pods])


def settle(prepared: Prepared, context: DrainContext) -> Moves:
    """Return the prepared answers completed with what the budgets allow now."""
    pods: list[Pod] = []
    daemon_pods: list[Pod] = []
    waiting: list[Pod] = []
    skipped: list[Pod] = []
    for pod, verdict in zip(prepared.pods, prepared.verdicts, strict=True):
        answer, name = verdict.answer, context.rules[verdict.rule].name
        if answer is None:
            answer, name = evaluate(pod, context, context.rules[verdict.rule :])
        if answer.outcome == "block":
            return Moves(blocked=Blocked(pod, answer, name))
        if answer.outcome == "wait":
            waiting.append(pod)
        elif is_daemon_set_pod(pod):
            daemon_pods.append(pod)
        elif answer.outcome != "skip":
            pods.append(pod)
        elif not is_mirror_pod(pod):
            skipped.append(pod)
    return Moves(tuple(pods), tuple(daemon_pods), tuple(waiting), tuple(skipped))


def pods_to_move(pods: Sequence[Pod], context: DrainContext) -> Moves:
    """Return what removing a node with these pods requires."""
    return settle(prepare(pods, context), context)


LAST_RANK: Final = 2
"""The rank of a node whose pods must move; no other comes after it."""


def removal_rank(pod: Pod, verdict: Verdict, context: DrainContext) -> int:
    """Return when a node with this pod is tried: 0 with the empty ones, 1 after them as it waits for the pod, 2 last.

    Neither controllers nor budgets are asked. Source: Cluster Autoscaler's order of candidates (EmptySorting).
    """
    answer = verdict.answer
    if answer is not None and context.rules[verdict.rule].uses_owners:
        others = [rule for rule in context.rules if not (rule.uses_owners or rule.uses_allowance)]
        answer, _ = evaluate(pod, context, others)
    if verdict.of_node or (answer is not None and answer.outcome == "skip"):
        return 0
    return 1 if answer is not None and answer.outcome == "wait" else LAST_RANK
