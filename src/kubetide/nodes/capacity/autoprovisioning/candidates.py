"""Node groups that the loop could create for the pods of a tick; they compete with the existing groups.

Each is one of the provider's candidates (an instance type in a zone), with the labels that pods ask for in their node
selectors. A candidate is left out while there is a group that is like it and not full: two alike are never needed.

Source: Cluster Autoscaler until 1.32, node group list processor of autoprovisioning; labels of several kinds of pods, one
set of labels for each group, are beyond it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.expander import Option
from kubetide.nodes.reasons import TOO_MANY_GROUPS, reason
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.registry.stock_outs import offers_of
from kubetide.nodes.registry.view import Counts, GroupView
from kubetide.nodes.scale_up.tick import Tick, WouldBe
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import template_of
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import GroupCandidate, NodeGroup
from kubetide.units.seeds import name_suffix

Labels = tuple[tuple[str, str], ...]

_MOST_LABEL_SETS: Final = 4
"""Sets of labels that candidates are tried with, beside none: those that most pods ask for."""
_RESERVED: Final = ("kubernetes.io", "k8s.io")
"""Domains of labels that only clouds, kubelets and administrators set."""


def add_candidates(state: State, tick: Tick) -> list[Reason]:
    """Add the groups that could be created for the tick's pods to the tick; return the reason if there are none."""
    tick.would_be, tick.no_candidates = {}, ""
    if not state.settings.node_autoprovisioning_enabled:
        return []
    tick.no_candidates = _why_none(state)
    if not tick.no_candidates:
        useful = [one for one in state.candidates if _has_nothing_idle(one, tick)]
        for labels in _label_sets(tick):
            for candidate in useful:
                _add(state, tick, candidate, labels)
        if tick.would_be:
            return [reason("CandidateGroups", groups=len(tick.would_be))]
        tick.no_candidates = "each is like a group that may still grow, or has devices that no pod asks for"
    return [reason("NoCandidateGroups", why=tick.no_candidates)]


def _why_none(state: State) -> str:
    """Return why no group is to be created at all, whatever the pods are; empty where some may be."""
    limit = state.settings.max_autoprovisioned_node_group_count
    if groups_left(state) <= 0:
        return f"--max-autoprovisioned-node-group-count={limit} is reached"
    return "" if state.candidates else "the cloud offers none"


def _has_nothing_idle(candidate: GroupCandidate, tick: Tick) -> bool:
    """Return whether some pod asks for each kind of device that the candidate's machines have: GPUs are expensive."""
    template = candidate.group.template
    if template is None:
        return True
    classes = [verdict.pods.pod_class for verdict in tick.verdicts]
    if template.slices and not any(pod_class.devices is not None for pod_class in classes):
        return False
    asked = {name for pod_class in classes for name, amount in pod_class.requests.items() if amount > 0}
    there = template.node.status.allocatable or {}
    return all(name in asked for name, amount in there.items() if "/" in name and str(amount) != "0")


def groups_left(state: State) -> int:
    """Return how many groups may still be created."""
    made = sum(group.autoprovisioned for group in state.groups.values())
    return max(0, state.settings.max_autoprovisioned_node_group_count - made)


def leave_out_surplus(state: State, tick: Tick, options: Sequence[Option]) -> bool:
    """Drop candidates of a choice beyond the number of groups that may be created; return whether any were dropped.

    Those with the most pods stay; then no other candidate is offered, so that the next choice keeps to the limit.
    """
    new = sorted((one for one in options if one.group.id in tick.would_be), key=lambda one: -len(one.pods))
    left = groups_left(state)
    if len(new) <= left:
        return False
    chosen = {one.group.id: None for one in new[:left]}
    dropped = {name: None for name in tick.would_be if name not in chosen}
    tick.skipped.update({name: (TOO_MANY_GROUPS,) for name in dropped if name not in tick.skipped})
    for verdict in tick.verdicts:
        verdict.accepted = {name: None for name in verdict.accepted if name not in dropped}
        verdict.rejected = {name: one for name, one in verdict.rejected.items() if name not in dropped}
    return True


def own_labels(pod: Pod) -> Labels:
    """Return the labels that the pod's node selector requires and a new group may be given."""
    selector = pod.spec.node_selector or {}
    return tuple(sorted((key, value) for key, value in selector.items() if not _is_reserved(key)))


def _label_sets(tick: Tick) -> list[Labels]:
    """Return the sets of labels to try: none, and then those of most pods first."""
    pods: dict[Labels, int] = {}
    for verdict in tick.verdicts:
        asked = own_labels(verdict.pods.pods[0])
        if asked:
            pods[asked] = pods.get(asked, 0) + len(verdict.pods.pods)
    return [(), *sorted(pods, key=lambda labels: (-pods[labels], labels))[:_MOST_LABEL_SETS]]


def _add(state: State, tick: Tick, candidate: GroupCandidate, labels: Labels) -> None:
    known = candidate.group.template
    there = {} if known is None else known.node.metadata.labels or {}
    added = {key: value for key, value in labels if key not in there}
    if (labels and not added) or (added and not candidate.takes_labels):
        return
    if any(there.get(key, value) != value for key, value in labels):
        return
    given = {**(candidate.new.labels or {}), **added}
    if any(_is_like(candidate.group, given, tick, group) for group in state.groups.values()):
        return
    would_be = _labelled(candidate.group, added)
    group_id = _free_id(state, candidate.new.id, labels)
    group = replace(would_be, id=group_id, exists=False)
    new = replace(candidate.new, id=group_id, labels=given or None)
    tick.would_be[group_id] = WouldBe(new, GroupView(group, Counts(), None), added)
    tick.templates[group_id] = template_of(state, group, ())


def _labelled(group: NodeGroup, labels: dict[str, str]) -> NodeGroup:
    if group.template is None or not labels:
        return group
    node = group.template.node
    meta = replace(node.metadata, labels={**(node.metadata.labels or {}), **labels})
    return replace(group, template=replace(group.template, node=replace(node, metadata=meta)))


def _is_like(candidate: NodeGroup, labels: dict[str, str], tick: Tick, group: NodeGroup) -> bool:
    """Return whether a group that exists and is not full buys the same machines, with these labels."""
    template = tick.templates.get(group.id)
    if template is None or template.node.spec.taints or is_zero_or_max(group):
        return False
    if group.target_size >= group.max_size:
        return False
    there, offers = template.node.metadata.labels or {}, offers_of(candidate)
    return bool(offers) and offers == offers_of(group) and labels.items() <= there.items()


def _free_id(state: State, proposed: str, labels: Labels) -> str:
    """Return an id that no group has."""
    name = proposed
    if labels:
        name += f"-{name_suffix(0, *(text for pair in labels for text in pair))}"
    found, number = name, 1
    while found in state.groups:
        number += 1
        found = f"{name}-{number}"
    return found


def _is_reserved(key: str) -> bool:
    domain = key.rpartition("/")[0]
    return any(domain == one or domain.endswith(f".{one}") for one in _RESERVED)
