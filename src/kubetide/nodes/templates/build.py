"""How the template of each group is found: what a new node will look like, and the source of that.

In order, the first that there is: a good live node of the group; a node of it that was seen earlier;
what the cloud says, its amounts corrected by machines of the group or of the same instance type that were
seen, also by an earlier process; any live node, however unwell. What live nodes have shown is remembered,
with the least that was ever seen of each resource, so that a template never promises more than a machine
has been seen to have. With --templates-by-instance-type=false it is the first good node as it is.

Source of the order, but for the correction: Cluster Autoscaler, mixed template node info provider.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubetide.explain.reasons import Reason
from kubetide.nodes.facts.nodes import (
    HOSTNAME_LABEL,
    INSTANCE_TYPE_LABEL,
    TEMPLATE_LABEL,
    template_taints,
)
from kubetide.nodes.facts.pods import is_daemon_set_pod, is_mirror_pod
from kubetide.nodes.memory import SeenTemplate
from kubetide.nodes.reasons import reason
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.cached import KnownTemplates
from kubetide.nodes.templates.daemon_pods import with_daemon_pods
from kubetide.nodes.templates.learned import (
    corrected_by_machines,
    over_types,
    seen_template,
    template_inputs,
)
from kubetide.nodes.templates.template import LookedAt, Origin, Template
from kubetide.nodes.templates.upcoming_names import template_name
from kubetide.objects.base import Quantities
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import fresh_node
from kubetide.units.quantity import Quantity, quantity_error
from kubetide.units.time import Instant, after, format_rfc3339

_OLD_LABELS: Final = {
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE_LABEL,
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
}


def learn_templates(state: State, now: Instant) -> tuple[Reason, ...]:
    """Learn what the good live nodes of each group look like; return where the cloud was wrong."""
    memory, settings = state.memory, state.settings
    found: list[Reason] = []
    devices = state.node_devices()
    for group_id, good in _good_nodes(state, now).items():
        former = memory.templates.get(group_id)
        if not good:
            if former is not None and former.live:
                # Upstream's cache has the time of the last loop in which there was such a node.
                last = now if memory.templates_at is None else memory.templates_at
                memory.templates[group_id] = replace(former, live=False, seen_at=last)
            continue
        pods = state.snapshot.pods_on(good[0].metadata.name)
        slices = devices.left_of(good[0].metadata.name, _own_pods(state, good[0].metadata.name))
        known = state.looked_at.get(group_id) if state.memo else None
        same_sight = known is not None and (known.good, known.pods, known.slices) == (good, pods, slices)
        if known is not None and known.seen is former and same_sight:
            continue
        if known is not None and known.seen is former and (known.good, known.slices) == (good, slices):
            # Only pods have changed: of the same nodes the least is what it was.
            own = _own_pods(state, good[0].metadata.name)
            seen = replace(known.seen, pods=own, from_node=good[0].metadata.name, seen_at=now)
        else:
            seen = _seen(group_id, good, state, now, former, slices)
        if former is None or former.node.status != seen.node.status:
            found.append(reason("TemplateLearned", group_id, node=seen.from_node))
            found += _differences(state.groups[group_id], seen)
        # While nothing changes the time stands still; it moves when the last good node is gone.
        same = former is not None and former.live and replace(seen, seen_at=former.seen_at) == former
        learned = memory.templates[group_id] = former if same and former is not None else seen
        state.looked_at[group_id] = LookedAt(good, pods, slices, learned)
    for group_id, seen in sorted(memory.templates.items()):
        expired = not seen.live and after(seen.seen_at, settings.node_info_cache_expire_time) < now
        if group_id not in state.groups or expired:
            del memory.templates[group_id]
    memory.templates_at = now
    return tuple(found)


def _good_nodes(state: State, now: Instant) -> dict[str, list[Node]]:
    """Return, by group, the nodes that can be a template, in name order."""
    known = state.known_nodes(now)
    if known.good is not None:
        return known.good
    good: dict[str, list[Node]] = {}
    waits = False
    for group_id, names in state.nodes_by_group().items():
        health = [(name, state.health(name)) for name in names]
        good[group_id] = [state.nodes[name] for name, one in health if one.is_good_template(now)]
        waits = waits or len(good[group_id]) < sum(one.stable_after is not None for _, one in health)
    if not waits:
        known.good = good
    return good


def all_templates(state: State) -> dict[str, Template | None]:
    """Return ``template_of`` each group; cached ones where their input is unchanged."""
    names = state.nodes_by_group()
    known = state.known_templates if state.memo else KnownTemplates()
    known.settle(state.settings, state.snapshot.facts, state.daemon_sets, state.groups)
    found: dict[str, Template | None] = {}
    new_pods = state.memory.new_pods
    of_sets = [new_pods.get(one.metadata.uid) for one in state.daemon_sets.values()] if new_pods else []
    for group_id, group in state.groups.items():
        made_of = (*template_inputs(state, group), *of_sets)
        template = known.find(group_id, made_of)
        if template is None:
            template = template_of(state, group, names[group_id])
            if template is not None and template.origin != "unwell":
                known.keep(group_id, made_of, template)
        found[group_id] = template
    return found


def template_of(state: State, group: NodeGroup, nodes: Sequence[str]) -> Template | None:
    """Return the group's template, or None if its nodes' look is unknown.

    Args:
        state: Read only; ``learn_templates`` has been called for this tick.
        group: The group.
        nodes: Names of the group's nodes, in name order.
    """
    known = expected(state, group)
    if known is not None:
        return _template(known.node, known.pods, known.slices, known.origin, known.source, state)
    for name in nodes:
        node = _sanitised(state.nodes[name], group.id, state.settings)
        pods = _own_pods(state, name)
        slices = state.node_devices().left_of(name, pods)
        return _template(node, pods, slices, "unwell", f"live node {name}, which is not well", state)
    return None


class Expected(NamedTuple):
    """The expected next node of a group, its own pods and devices, and the source."""

    node: Node
    pods: tuple[Pod, ...]
    slices: tuple[ResourceSlice, ...]
    origin: Origin
    source: str


def expected(state: State, group: NodeGroup) -> Expected | None:
    """Return the group's expected next node without looking at live nodes; None if nothing is known."""
    seen = seen_template(state, group)
    if seen is not None:
        origin: Origin = "live" if seen.live else "seen"
        source = f"live node {seen.from_node}"
        if not seen.live:
            source = f"seen earlier on node {seen.from_node}, last at {format_rfc3339(seen.seen_at)}"
        node, others = over_types(state, group, _with_resources_of_the_cloud(state, group, seen.node))
        return Expected(node, seen.pods, seen.slices, origin, source + others)
    if group.template is None or not _is_readable(group.template.node):
        return None
    said = group.template.source or "the provider gave no source"
    node, origin, source = corrected_by_machines(state, group, group.template.node, said)
    sanitised = _sanitised(_with_old_labels(node), group.id, state.settings)
    node, others = over_types(state, group, sanitised)
    own = tuple(pod for pod in group.template.pods or () if _is_nodes_own(pod))
    return Expected(node, own, group.template.slices or (), origin, source + others)


def _with_resources_of_the_cloud(state: State, group: NodeGroup, node: Node) -> Node:
    """Return the node of a live template with the resources that on AWS only the cloud's template names.

    Tags of an Auto Scaling group may name what a device plugin has yet to register. Source: Cluster Autoscaler, its
    processor of templates for AWS.
    """
    said = group.template
    if state.settings.provider != "aws" or said is None or not _is_readable(said.node):
        return node
    capacity = {**(said.node.status.capacity or {}), **(node.status.capacity or {})}
    allocatable = {**(said.node.status.allocatable or {}), **(node.status.allocatable or {})}
    if capacity == node.status.capacity and allocatable == node.status.allocatable:
        return node
    return replace(node, status=replace(node.status, capacity=capacity, allocatable=allocatable))


def _is_readable(node: Node) -> bool:
    """Return whether the sizes that a cloud gave can be read; what cannot is as good as no template."""
    sizes = {**(node.status.capacity or {}), **(node.status.allocatable or {})}
    return all(quantity_error(value) is None for value in sizes.values())


def _seen(
    group_id: str,
    good: Sequence[Node],
    state: State,
    now: Instant,
    former: SeenTemplate | None,
    slices: tuple[ResourceSlice, ...],
) -> SeenTemplate:
    first = good[0]
    node = _sanitised(first, group_id, state.settings)
    if state.settings.templates_by_instance_type:
        statuses = [_readable(other.status) for other in good if _machine(other) == _machine(first)]
        if former is not None and _machine(former.node) == _machine(first):
            statuses.append(former.node.status)
        least = replace(
            node.status,
            capacity=_least([status.capacity for status in statuses]),
            allocatable=_least([status.allocatable for status in statuses]),
        )
        node = replace(node, status=least)
    return SeenTemplate(
        node=node,
        pods=_own_pods(state, first.metadata.name),
        slices=slices,
        from_node=first.metadata.name,
        seen_at=now,
    )


def _machine(node: Node) -> str:
    return (node.metadata.labels or {}).get(INSTANCE_TYPE_LABEL, "")


def _least(each: Sequence[Quantities | None]) -> Quantities:
    """Return the least of every resource of the first node; others that have none of it do not count.

    A device plugin registers its resource after the node is ready: for a while a machine lacks what it has.
    """
    # Machines of one type mostly say the same: what is equal is compared once.
    given: list[Quantities] = []
    for quantities in each:
        if (quantities or {}) not in given:
            given.append(quantities or {})
    first = given[0]
    if len(given) == 1:
        return first
    return {name: _least_of_one(name, value, given[1:]) for name, value in first.items()}


def _least_of_one(name: str, first: str | float, others: Sequence[Quantities]) -> str | float:
    if Quantity.parse(first).sign() == 0:
        return first
    there = (other[name] for other in others if name in other and Quantity.parse(other[name]).sign())
    return min((first, *there), key=Quantity.parse)


def _differences(group: NodeGroup, seen: SeenTemplate) -> list[Reason]:
    said = (group.template.node.status.allocatable if group.template else None) or {}
    real = seen.node.status.allocatable or {}
    return [
        reason(
            "TemplateDiffers",
            group.id,
            resource=name,
            seen=str(real.get(name, 0)),
            said=str(said[name]),
            node=seen.from_node,
        )
        for name in sorted(said)
        if _differ(real.get(name, 0), said[name])
    ]


def _differ(real: str | float, said: str | float) -> bool:
    """Return whether two amounts differ; what cannot be read says nothing that could be wrong."""
    if quantity_error(real) is not None or quantity_error(said) is not None:
        return False
    return Quantity.parse(real) != Quantity.parse(said)


def _own_pods(state: State, node_name: str) -> tuple[Pod, ...]:
    """Return the pods that a new node of the same kind will have too."""
    return tuple(pod for pod in state.snapshot.pods_on(node_name) if _is_nodes_own(pod))


def _is_nodes_own(pod: Pod) -> bool:
    """Return whether a DaemonSet or the kubelet makes the pod on each node."""
    return (is_daemon_set_pod(pod) or is_mirror_pod(pod)) and not pod.metadata.deletion_timestamp


def _sanitised(node: Node, group_id: str, settings: Settings) -> Node:
    name = template_name(group_id)
    labels = {**(node.metadata.labels or {}), HOSTNAME_LABEL: name, TEMPLATE_LABEL: "true"}
    status = _readable(node.status)
    ready = tuple(
        condition
        for condition in status.conditions or ()
        if condition.type == "Ready" and condition.status == "True"
    )
    return Node(
        metadata=ObjectMeta(name=name, labels=labels),
        spec=NodeSpec(
            unschedulable=node.spec.unschedulable and not settings.scale_from_unschedulable,
            taints=template_taints(node.spec.taints, settings) or None,
        ),
        status=NodeStatus(
            capacity=status.capacity,
            allocatable=status.allocatable,
            conditions=ready,
            declared_features=status.declared_features,
        ),
    )


def _readable(status: NodeStatus) -> NodeStatus:
    """Return the status without amounts that cannot be read: a new node promises none of these."""
    sizes = {"capacity": status.capacity or {}, "allocatable": status.allocatable or {}}
    known = {
        part: {name: value for name, value in given.items() if quantity_error(value) is None}
        for part, given in sizes.items()
    }
    return status if known == sizes else replace(status, **known)


def _with_old_labels(node: Node) -> Node:
    """Give a cloud's node the deprecated labels that kubelets set beside the new ones, as upstream does."""
    labels = dict(node.metadata.labels or {})
    labels.update({old: labels[new] for old, new in _OLD_LABELS.items() if new in labels})
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _template(
    node: Node,
    pods: tuple[Pod, ...],
    slices: tuple[ResourceSlice, ...],
    origin: Origin,
    source: str,
    state: State,
) -> Template:
    pods = with_daemon_pods(node, pods, origin, state)
    fresh = fresh_node(node, pods, state.snapshot.facts)
    return Template(node, pods, origin, source, fresh, slices, state.settings.gpu_label)
