"""The smallest change with which a group would take a pod, verified by deciding again.

For one group, the first thing that keeps the pod off is put right, and all is decided again; so on
until the group takes the pod or nothing that can be put right is left. So every change that is
offered as verified has been decided on as if it were so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from kubetide.nodes.expander import needs_prices
from kubetide.nodes.explain.waiting.group_changes import (
    NEW_GROUPS,
    asks_far_too_much,
    change_of_labels,
    in_one_group,
    larger_machine,
)
from kubetide.nodes.explain.waiting.pod_changes import Change, Changed, ask_less, labels_missing, tolerate
from kubetide.nodes.explain.waiting.volume_changes import where_the_volume_is
from kubetide.nodes.facts.machine_amounts import MOST_OF_ONE_NODE
from kubetide.nodes.facts.nodes import TEMPLATE_LABEL
from kubetide.nodes.memory import Memory
from kubetide.nodes.reasons import BACKED_OFF, MAX_SIZE_REACHED, NO_PRICE, USELESS
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.cluster_state import observe
from kubetide.nodes.scale_up.increase.headroom import with_expected_gpus
from kubetide.nodes.scale_up.increase.limits import CLUSTER_WIDE_FLAGS, Headroom
from kubetide.nodes.scale_up.orchestrator import open_tick, plan_scale_up
from kubetide.nodes.scale_up.pending.pods import kind_of
from kubetide.nodes.scale_up.tick import Rejection, Tick
from kubetide.nodes.settings import Settings, parse_gpu_total
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import learn_templates
from kubetide.nodes.templates.learning import learn
from kubetide.nodes.templates.template import Template
from kubetide.objects.meta import Key
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import Refusal
from kubetide.units.time import Instant, format_rfc3339

_MOST_CHANGES = 5


class Remedy(msgspec.Struct, frozen=True):
    """Changes that together make a group take a pod; ``verified`` if deciding again with them confirmed it.

    ``remaining`` is what the group still says to the pod where they are not enough; empty where that is not known.
    """

    group: str
    changes: tuple[Change, ...]
    verified: bool
    remaining: str = ""

    @property
    def text(self) -> str:
        """All changes in one sentence."""
        return " and ".join(change.what for change in self.changes)

    @property
    def needs_delivery(self) -> bool:
        """Whether the remedy waits for a backoff: it helps only if the cloud delivers nodes again."""
        return any(change.kind == "backoff" for change in self.changes)

    @property
    def effort(self) -> tuple[int, int, bool, Instant]:
        """A sort key; the smallest effort is least.

        Few changes, no new group, no other labels on nodes, waiting over changing, a short wait.
        """
        waits = [change.until for change in self.changes if change.until is not None]
        groups = sum(change.kind in NEW_GROUPS for change in self.changes)
        labels = sum(change.kind == "label" for change in self.changes)
        waiting = len(waits) == len(self.changes)
        return len(self.changes) + groups, labels, not waiting, max(waits, default=Instant(0))


@dataclass(slots=True)
class _Supposed:
    """How the world would be."""

    pod: Pod
    groups: dict[str, NodeGroup]
    settings: Settings
    labels: dict[str, str] = field(default_factory=dict)
    machine: Node | None = None
    forgiven: dict[str, None] = field(default_factory=dict)


class Supposing:
    """A copy of a state in which one pod, the groups and the settings can be changed hypothetically."""

    def __init__(self, state: State, key: Key, now: Instant) -> None:
        self._key = key
        self._now = now
        self._state = copy_state(state)
        learn(self._state, now)
        self._memory = msgspec.json.encode(self._state.memory)
        self._groups = dict(self._state.groups)
        self._settings = self._state.settings
        self._plain: Tick | None = None

    def unchanged_runs(self) -> Tick:
        """Decide with nothing changed, and ask groups that are skipped all the same. The result holds until the next call."""
        supposed = self._unchanged()
        supposed.settings = replace(
            supposed.settings, scaleup_simulation_for_skipped_node_groups_enabled=True
        )
        return self._decide(supposed, "", choose=True)

    def remedy(self, group_id: str) -> Remedy | None:
        """Return what would make the group take the pod; None if it takes the pod already or no remedy is known."""
        supposed = self._unchanged()
        changes: list[Change] = []
        remaining = ""
        group = supposed.groups.get(group_id)
        if group is not None and group.price_per_hour is None and needs_prices(self._settings.expander):
            changes.append(_give_price(group, supposed))
        for _ in range(_MOST_CHANGES):
            tick = self._decide(supposed, group_id) if changes else self._unchanged_tick()
            if _takes(tick, group_id, self._key):
                return Remedy(group_id, in_one_group(changes, group_id), verified=True) if changes else None
            rejection = _rejection(tick, group_id, self._key)
            remaining = "" if rejection is None else rejection.text
            change = self._next_change(tick, group_id, supposed)
            if not change:
                break
            changes = [one for one in changes if one.kind != "max_size" or change[0].kind != "max_size"]
            changes += change
        return (
            Remedy(group_id, in_one_group(changes, group_id), verified=False, remaining=remaining)
            if changes
            else None
        )

    def _unchanged_tick(self) -> Tick:
        """Return the decision with nothing changed, the first one of every group."""
        if self._plain is None:
            self._plain = self._decide(self._unchanged(), "")
        return self._plain

    def _unchanged(self) -> _Supposed:
        return _Supposed(self._state.pods[self._key], dict(self._groups), self._settings)

    def _decide(self, supposed: _Supposed, group_id: str, *, choose: bool = False) -> Tick:
        """Decide scale-up as the loop would, up to the options where nothing is to be chosen.

        The group's labels are those supposed.
        """
        state = self._state
        state.end_tick()
        state.memory = msgspec.json.decode(self._memory, type=Memory)
        state.settings = supposed.settings
        state.set_groups(supposed.groups.values())
        original = state.pods[self._key]
        state.put_pod(supposed.pod)
        for forgiven in supposed.forgiven:
            state.memory.backoff.pop(forgiven, None)
            state.memory.useless.pop(forgiven, None)
        learn_templates(state, self._now)
        if supposed.machine is not None:
            _suppose_machine(state, group_id, supposed.machine)
        if supposed.labels:
            _suppose_labels(state, group_id, supposed.labels)
        view = observe(state, self._now)
        tick = open_tick(state, view, self._now)
        # Requests and pods take turns; what is asked about is the pod.
        tick.requests = None
        plan_scale_up(state, tick, self._now, choosing=choose)
        state.end_tick()
        state.put_pod(original)
        return tick

    def _next_change(self, tick: Tick, group_id: str, supposed: _Supposed) -> tuple[Change, ...]:
        """Remove from the supposed world what keeps the group from taking the pod; return the change, empty for nothing known."""
        change = self._limit_change(tick, group_id, supposed)
        if change is not None:
            return (change,)
        rejection, template = _rejection(tick, group_id, self._key), tick.templates[group_id]
        if rejection is None or rejection.refusal is None or template is None:
            return ()
        if rejection.refusal.plugin in {"VolumeBinding", "VolumeZone"}:
            labels = {**(template.node.metadata.labels or {}), **supposed.labels}
            found = where_the_volume_is(supposed.pod, self._state.volumes.for_filters(), labels, group_id)
            if found is None:
                return ()
            supposed.labels.update(found[0])
            return (found[1],)
        return _put_refusal_right(rejection.refusal, template, group_id, supposed)

    def _limit_change(self, tick: Tick, group_id: str, supposed: _Supposed) -> Change | None:
        """Change a limit, or waits, where the group is not even asked."""
        group, template = supposed.groups[group_id], tick.templates[group_id]
        if tick.result == "ScaleUpLimitedByMaxNodesTotal":
            return _raise_total(supposed, tick)
        skipped = tick.skipped.get(group_id)
        if skipped:
            return self._put_skip_right(skipped[0], group, template, tick, supposed)
        rejection = _rejection(tick, group_id, self._key)
        if rejection is None:
            # The group would take it, but the limit on all nodes allows no further one.
            if supposed.settings.max_nodes_total:
                return _raise_total(supposed, tick)
            return self._raise_for_others(group_id, supposed)
        if rejection.reasons == (USELESS,):
            name = f"{group_id} {kind_of(supposed.pod)}"
            until = self._state.memory.useless[name].until
            supposed.forgiven[name] = None
            return Change(
                "wait",
                f"wait until {format_rfc3339(until)}, when group {group_id} is offered to these pods again",
                until,
            )
        return None

    def _raise_for_others(self, group_id: str, supposed: _Supposed) -> Change | None:
        """Raise the group's maximum so far that there is a node for the pod behind the other pods that wait."""
        group = supposed.groups[group_id]
        supposed.groups[group_id] = replace(group, max_size=group.target_size + len(self._state.pending) + 1)
        tick = self._decide(supposed, group_id)
        nodes = next((one.nodes for one in tick.options if one.group.id == group_id), 0)
        maximum = group.target_size + nodes
        return _raise_maximum(self._groups[group_id], maximum, supposed) if maximum > group.max_size else None

    def _put_skip_right(
        self, why: str, group: NodeGroup, template: Template | None, tick: Tick, supposed: _Supposed
    ) -> Change | None:
        if why == MAX_SIZE_REACHED:
            return _raise_maximum(group, group.target_size + 1, supposed)
        if why == NO_PRICE:
            return _give_price(group, supposed)
        if why == BACKED_OFF:
            supposed.forgiven[group.id] = None
            entry = self._state.memory.backoff[group.id]
            return Change(
                "backoff",
                f"wait until {format_rfc3339(entry.until)}, when the backoff of group {group.id} ends ({entry.error_message})",
                entry.until,
            )
        if template is not None and why.startswith("exceeded quota"):
            return _raise_limits(self._state, template, tick, supposed)
        return None


def _raise_maximum(group: NodeGroup, maximum: int, supposed: _Supposed) -> Change:
    supposed.groups[group.id] = replace(supposed.groups[group.id], max_size=maximum)
    return Change("max_size", f"raise max of group {group.id} from {group.max_size} to {maximum}")


def _give_price(group: NodeGroup, supposed: _Supposed) -> Change:
    supposed.groups[group.id] = replace(group, price_per_hour=0.0)
    return Change("price", f"give group {group.id} a price per hour")


def _takes(tick: Tick, group_id: str, key: Key) -> bool:
    if any((pod.metadata.namespace, pod.metadata.name) == key for pod, _ in tick.demand.placed):
        return True
    return any(
        option.group.id == group_id
        and any((pod.metadata.namespace, pod.metadata.name) == key for pod in option.pods)
        for option in tick.options
    )


def _rejection(tick: Tick, group_id: str, key: Key) -> Rejection | None:
    for verdict in tick.verdicts:
        if any((pod.metadata.namespace, pod.metadata.name) == key for pod in verdict.pods.pods):
            return verdict.rejected.get(group_id)
    return None


def _put_refusal_right(
    refusal: Refusal, template: Template, group_id: str, supposed: _Supposed
) -> tuple[Change, ...]:
    changed: Changed | None = None
    match refusal.plugin:
        case "NodeResourcesFit":
            larger = larger_machine(refusal, template.node, group_id) if asks_far_too_much(refusal) else None
            if larger is not None:
                supposed.machine, change = larger
                return (change,)
            changed = ask_less(supposed.pod, refusal)
        case "TaintToleration":
            changed = tolerate(supposed.pod, template.node.spec.taints or ())
        case "NodeAffinity":
            missing = labels_missing(
                supposed.pod, {**(template.node.metadata.labels or {}), **supposed.labels}
            )
            if missing:
                supposed.labels.update(missing)
                return change_of_labels(missing, group_id)
    if changed is None:
        return ()
    supposed.pod, change = changed
    return (change,)


def _raise_total(supposed: _Supposed, tick: Tick) -> Change | None:
    limit = supposed.settings.max_nodes_total
    nodes = max(limit, tick.view.total.registered + sum(tick.upcoming.values())) + 1
    supposed.settings = replace(supposed.settings, max_nodes_total=nodes)
    return Change("max_nodes_total", f"raise --max-nodes-total from {limit} to {nodes}")


def _raise_limits(state: State, template: Template, tick: Tick, supposed: _Supposed) -> Change | None:
    nodes = [*state.nodes.values()]
    for group, count in tick.upcoming.items():
        known = tick.templates[group]
        nodes += [known.node] * count if known is not None else []
    headroom = Headroom(supposed.settings, [with_expected_gpus(state, tick, node) for node in nodes])
    used, need = headroom.used, template.capacity
    if any(need[name] > most for name, most in MOST_OF_ONE_NODE.items()):
        return None
    parts: list[str] = []
    for name, (flag, unit) in CLUSTER_WIDE_FLAGS.items():
        field_name = flag.replace("-", "_")
        text = str(getattr(supposed.settings, field_name))
        low, _, high = text.partition(":")
        needed = -(-(used[name] + need[name]) // unit)
        if needed > int(high):
            supposed.settings = replace(supposed.settings, **{field_name: f"{low}:{needed}"})
            parts.append(f"raise --{flag} from {text} to {low}:{needed}")
    raised = []
    for given in supposed.settings.gpu_total:
        gpu, limit = parse_gpu_total(given)
        needed = used.get(gpu, 0) + need.get(gpu, 0)
        if need.get(gpu) and needed > limit.maximum:
            raised.append(f"{gpu}:{limit.minimum}:{needed}")
            parts.append(f"raise --gpu-total from {given} to {raised[-1]}")
        else:
            raised.append(given)
    supposed.settings = replace(supposed.settings, gpu_total=tuple(raised))
    return Change("limits", " and ".join(parts)) if parts else None


def _suppose_labels(state: State, group_id: str, labels: dict[str, str]) -> None:
    """Give the group's template these labels."""
    _change_template(state, group_id, lambda node: _labelled(node, labels))


def _suppose_machine(state: State, group_id: str, machine: Node) -> None:
    """Give the group's template the amounts of this machine."""
    _change_template(
        state,
        group_id,
        lambda node: replace(
            node,
            status=replace(
                node.status, capacity=machine.status.capacity, allocatable=machine.status.allocatable
            ),
        ),
    )


def _change_template(state: State, group_id: str, change: Callable[[Node], Node]) -> None:
    """Change what the group's nodes are taken to be, whoever vouches for it."""
    seen = state.memory.templates.get(group_id)
    if seen is not None:
        state.memory.templates[group_id] = replace(seen, node=change(seen.node))
        return
    group = state.groups[group_id]
    if group.template is not None:
        changed = replace(group.template, node=change(group.template.node))
        state.set_groups({**state.groups, group_id: replace(group, template=changed)}.values())


def _labelled(node: Node, labels: dict[str, str]) -> Node:
    others = {name: value for name, value in (node.metadata.labels or {}).items() if name != TEMPLATE_LABEL}
    return replace(node, metadata=replace(node.metadata, labels={**others, **labels}))
