"""The smallest change with which a group would take a pod, verified by deciding again.

For one group, the first thing that keeps the pod off is put right, and all is decided again; so on
until the group takes the pod or nothing that can be put right is left. So every change that is
offered as verified has been decided on as if it were so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from dataclasses import replace as with_fields
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from kubetide.nodes.expander import Option, needs_prices
from kubetide.nodes.explain.waiting.daemon_sets import keep_off, suppose_without
from kubetide.nodes.explain.waiting.group_changes import (
    asks_far_too_much,
    change_of_labels,
    in_one_group,
    larger_machine,
)
from kubetide.nodes.explain.waiting.inter_pod_rules import PLUGINS, Labels, relax_rules
from kubetide.nodes.explain.waiting.limit_changes import LIMITS, GroupLimits, enforced_quotas
from kubetide.nodes.explain.waiting.misspelt_labels import spell_selector
from kubetide.nodes.explain.waiting.pod_changes import (
    Change,
    Changed,
    ask_less,
    labels_missing,
    tolerate,
    without_shorter_waits,
)
from kubetide.nodes.explain.waiting.supposed_templates import suppose_labels, suppose_machine
from kubetide.nodes.explain.waiting.volume_changes import where_the_volume_is
from kubetide.nodes.explain.waiting.way_out import WayOut
from kubetide.nodes.memory import Memory
from kubetide.nodes.reasons import (
    ATOMIC_OVER_MAX_TOTAL,
    BACKED_OFF,
    MAX_SIZE_REACHED,
    NO_PRICE,
    OUT_OF_STOCK,
    USELESS,
)
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.cluster_state import observe
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.registry.stock_outs import tried_again
from kubetide.nodes.scale_up.increase.headroom import headroom_of
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.orchestrator import open_tick, plan_scale_up
from kubetide.nodes.scale_up.pending.pods import kind_of
from kubetide.nodes.scale_up.tick import Rejection, Tick
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.nodes.templates.build import learn_templates
from kubetide.nodes.templates.learning import learn
from kubetide.nodes.templates.template import Template
from kubetide.objects.capacity import CapacityQuota
from kubetide.objects.kinds import CAPACITY_QUOTAS
from kubetide.objects.meta import Key, key_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import Refusal
from kubetide.units.time import Instant, format_rfc3339

_MOST_CHANGES = 5


@dataclass(slots=True)
class _Supposed:
    """How the world would be."""

    pod: Pod
    groups: dict[str, NodeGroup]
    settings: Settings
    quotas: Mapping[str, CapacityQuota]
    labels: dict[str, str] = field(default_factory=dict)
    machine: Node | None = None
    forgiven: dict[str, None] = field(default_factory=dict)
    without: dict[Key, None] = field(default_factory=dict)
    """DaemonSets that are kept off the group."""

    def take_over(self, limits: GroupLimits) -> None:
        """Suppose these limits of a group."""
        self.settings, self.quotas = limits.settings, limits.quotas
        group = self.groups[limits.group.id]
        self.groups[group.id] = replace(group, max_size=limits.group.max_size)


class _Decided(NamedTuple):
    """A tick, what the limits over the whole cluster leave in it, and its nodes, those on their way included.

    ``headroom`` is None where the limits let in all that the group that is asked about would buy for the pod.
    """

    tick: Tick
    headroom: Headroom | None
    nodes: int


class DecidingCopy:
    """A copy of a state to decide on again, for any number of pods: each decision begins with what there was.

    Attributes:
        state: The copy, with what its nodes teach of templates.
        memory: Its memory as JSON, which every decision changes.
        plain: The decision with nothing changed, the first one of every group; None before it is made.
    """

    def __init__(self, state: State, now: Instant) -> None:
        self.now = now
        self.state = copy_state(state)
        learn(self.state, now)
        self.memory = msgspec.json.encode(self.state.memory)
        self.shortages = dict(self.state.memory.stock_outs)
        self.groups = dict(self.state.groups)
        self.settings = self.state.settings
        self.quotas = enforced_quotas(self.state)
        self.plain: _Decided | None = None


class CopyOnDemand:
    """Makes one ``DecidingCopy`` for all that is asked of a state, when it is first needed; the state must stay as it is."""

    def __init__(self, state: State, now: Instant) -> None:
        self._state = state
        self._now = now

    @cached_property
    def copy(self) -> DecidingCopy:
        """The copy, made when it is first asked for."""
        return DecidingCopy(self._state, self._now)


class Supposing:
    """Decisions in which one pod, the groups and the settings are changed hypothetically."""

    def __init__(self, copy: DecidingCopy, key: Key) -> None:
        self._copy = copy
        self._key = key
        self._now = copy.now
        self._state = copy.state

    def unchanged_runs(self) -> Tick:
        """Decide with nothing changed, and ask groups that are skipped all the same. The result holds until the next call."""
        supposed = self._unchanged()
        supposed.settings = replace(
            supposed.settings, scaleup_simulation_for_skipped_node_groups_enabled=True
        )
        return self._decide(supposed, "", choose=True).tick

    def way_out(self, group_id: str) -> WayOut | None:
        """Return what would make the group take the pod; None if it takes the pod already or no way out is known."""
        supposed = self._unchanged()
        changes: list[Change] = []
        remaining = ""
        group = supposed.groups.get(group_id)
        if group is not None and group.price_per_hour is None and needs_prices(self._copy.settings.expander):
            changes.append(_give_price(group, supposed))
        for _ in range(_MOST_CHANGES):
            decided = self._decide(supposed, group_id) if changes else self._decide_unchanged()
            if self._takes(decided, group_id, supposed):
                return WayOut(group_id, in_one_group(changes, group_id), verified=True) if changes else None
            rejection = _rejection(decided.tick, group_id, self._key)
            remaining = "" if rejection is None else rejection.text
            change = self._next_change(decided.tick, group_id, supposed)
            if all(one in changes for one in change):
                break
            if change[0].kind in LIMITS:
                changes = [one for one in changes if one.kind not in LIMITS]
            changes = without_shorter_waits([*changes, *change])
        return (
            WayOut(group_id, in_one_group(changes, group_id), verified=False, remaining=remaining)
            if changes
            else None
        )

    def _takes(self, decided: _Decided, group_id: str, supposed: _Supposed) -> bool:
        """Return whether the pod fits, or is for one of the group's new nodes that the limits let in."""
        if any(key_of(pod) == self._key for pod, _ in decided.tick.demand.placed):
            return True
        option = _option(decided.tick, group_id, self._key)
        if option is None or is_zero_or_max(option.group) or decided.headroom is None:
            return option is not None
        allowed = decided.headroom.cap(option.template.node, option.nodes)
        if allowed == option.nodes:
            return True
        fewer = with_fields(supposed, settings=replace(supposed.settings, max_nodes_per_scaleup=allowed))
        return _option(self._decide(fewer, group_id).tick, group_id, self._key) is not None

    def _decide_unchanged(self) -> _Decided:
        """Return the decision with nothing changed, the first one of every group."""
        if self._copy.plain is None:
            self._copy.plain = self._decide(self._unchanged(), "")
        return self._copy.plain

    def _unchanged(self) -> _Supposed:
        copy = self._copy
        return _Supposed(self._state.pods[self._key], dict(copy.groups), copy.settings, copy.quotas)

    def _decide(self, supposed: _Supposed, group_id: str, *, choose: bool = False) -> _Decided:
        """Decide scale-up as the loop would, up to the options where nothing is to be chosen.

        The group's labels are those supposed.
        """
        state = self._state
        state.end_tick()
        state.memory = msgspec.json.decode(self._copy.memory, type=Memory)
        state.settings = supposed.settings
        state.set_groups(supposed.groups.values())
        for quota in supposed.quotas.values():
            state.capacity.put(quota, CAPACITY_QUOTAS)
        original = state.pods[self._key]
        state.put_pod(supposed.pod)
        for forgiven in supposed.forgiven:
            state.memory.backoff.pop(forgiven, None)
            state.memory.useless.pop(forgiven, None)
            state.memory.stock_outs.pop(forgiven, None)
        learn_templates(state, self._now)
        daemon_sets = state.daemon_sets
        for daemon_set in supposed.without:
            suppose_without(state, group_id, daemon_set)
        if supposed.machine is not None:
            suppose_machine(state, group_id, supposed.machine)
        if supposed.labels:
            suppose_labels(state, group_id, supposed.labels)
        view = observe(state, self._now)
        tick = open_tick(state, view, self._now)
        # Requests and pods take turns; what is asked about is the pod.
        tick.requests = None
        plan_scale_up(state, tick, self._now, choosing=choose)
        option = _option(tick, group_id, self._key) if group_id else None
        # One node is within the limits, or the group would have been skipped.
        may_exceed = not group_id or (option is not None and option.nodes > 1)
        decided = _Decided(tick, headroom_of(state, tick) if may_exceed else None, len(state.snapshot))
        state.end_tick()
        state.put_pod(original)
        state.daemon_sets = daemon_sets
        return decided

    def _next_change(self, tick: Tick, group_id: str, supposed: _Supposed) -> tuple[Change, ...]:
        """Remove from the supposed world what keeps the group from taking the pod; return the change, empty for nothing known."""
        changes = self._limit_changes(tick, group_id, supposed)
        if changes is not None:
            return changes
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
        if (plugin := rejection.refusal.plugin) in PLUGINS:
            asked = partial(self._refuses, plugin, group_id, supposed)
            relaxed = relax_rules(plugin, supposed.pod, group_id, asked)
            if relaxed is None:
                return ()
            supposed.pod, change = relaxed
            return (change,)
        if rejection.refusal.plugin == "NodeAffinity":
            labels = {**(template.node.metadata.labels or {}), **supposed.labels}
            made = [one.node.metadata.labels or {} for one in tick.templates.values() if one is not None]
            spelled = spell_selector(supposed.pod, labels, made)
            if spelled is not None:
                supposed.pod, change = spelled
                return (change,)
        return _put_refusal_right(rejection.refusal, template, group_id, supposed)

    def _refuses(self, plugin: str, group: str, supposed: _Supposed, pod: Pod, labels: Labels) -> bool:
        """Return whether a plugin refuses the changed pod on the group's nodes with these labels added."""
        other = with_fields(supposed, pod=pod, labels={**supposed.labels, **labels})
        found = _rejection(self._decide(other, group).tick, group, self._key)
        return found is not None and found.refusal is not None and found.refusal.plugin == plugin

    def _limit_changes(self, tick: Tick, group_id: str, supposed: _Supposed) -> tuple[Change, ...] | None:
        """Change limits, or wait, where the group is not asked or has no node left for the pod; None where it refuses the pod."""
        skipped = tick.skipped.get(group_id)
        if skipped:
            return self._put_skip_right(skipped[0], group_id, tick, supposed)
        if tick.result == "ScaleUpLimitedByMaxNodesTotal":
            return self._raise(group_id, 1, tick, supposed)
        rejection = _rejection(tick, group_id, self._key)
        if rejection is None:
            return self._raise(group_id, self._nodes_for_all(group_id, supposed), tick, supposed)
        if rejection.reasons == (USELESS,):
            name = f"{group_id} {kind_of(supposed.pod)}"
            until = self._state.memory.useless[name].until
            supposed.forgiven[name] = None
            text = f"wait until {format_rfc3339(until)}, when group {group_id} is offered to these pods again"
            return (Change("wait", text, until),)
        return None

    def _nodes_for_all(self, group_id: str, supposed: _Supposed) -> int:
        """Return how many new nodes the group needs for the pod and the others that wait and that it takes."""
        maximum = self._copy.groups[group_id].target_size + len(self._state.pending) + 1
        lifted = with_fields(supposed, groups=dict(supposed.groups))
        lifted.take_over(self._limits(group_id).lifted(maximum))
        option = _option(self._decide(lifted, group_id).tick, group_id, self._key)
        return 0 if option is None else option.nodes

    def _limits(self, group_id: str) -> GroupLimits:
        """Return the limits as they are."""
        plain = self._decide_unchanged()
        assert plain.headroom is not None, "it is counted where no group is asked about"
        copy = self._copy
        return GroupLimits(copy.groups[group_id], copy.settings, copy.quotas, plain.headroom, plain.nodes)

    def _raise(self, group_id: str, nodes: int, tick: Tick, supposed: _Supposed) -> tuple[Change, ...]:
        """Raise the limits that keep the group from so many new nodes."""
        limits, changes = self._limits(group_id).raised(tick.templates[group_id], nodes)
        supposed.take_over(limits)
        return changes

    def _put_skip_right(self, why: str, group_id: str, tick: Tick, supposed: _Supposed) -> tuple[Change, ...]:
        group = supposed.groups[group_id]
        if why == NO_PRICE:
            return (_give_price(group, supposed),)
        if why == BACKED_OFF:
            supposed.forgiven[group.id] = None
            entry = self._state.memory.backoff[group.id]
            text = f"wait until {format_rfc3339(entry.until)}, when the backoff of group {group.id} ends ({entry.error_message})"
            return (Change("backoff", text, entry.until),)
        if why == OUT_OF_STOCK:
            offer, again = tried_again(self._copy.shortages, group, self._copy.settings)
            supposed.forgiven[offer] = None
            shortage = self._copy.shortages[offer]
            seen = f"out of stock at {format_rfc3339(shortage.seen_at)} in group {shortage.group}"
            text = f"wait until {format_rfc3339(again)}, when {offer} is asked for again ({seen})"
            return (Change("backoff", text, again),)
        if why in {MAX_SIZE_REACHED, ATOMIC_OVER_MAX_TOTAL} or why.startswith("exceeded quota"):
            missing = group.max_size - group.target_size if is_zero_or_max(group) else 1
            return self._raise(group_id, max(missing, 1), tick, supposed)
        return ()


def _give_price(group: NodeGroup, supposed: _Supposed) -> Change:
    supposed.groups[group.id] = replace(group, price_per_hour=0.0)
    return Change("price", f"give group {group.id} a price per hour")


def _option(tick: Tick, group_id: str, key: Key) -> Option | None:
    """Return what the group would buy, if the pod is among those that it is for."""
    found = (one for one in tick.options if one.group.id == group_id)
    return next((one for one in found if any(key_of(pod) == key for pod in one.pods)), None)


def _rejection(tick: Tick, group_id: str, key: Key) -> Rejection | None:
    for verdict in tick.verdicts:
        if any(key_of(pod) == key for pod in verdict.pods.pods):
            return verdict.rejected.get(group_id)
    return None


def _put_refusal_right(
    refusal: Refusal, template: Template, group_id: str, supposed: _Supposed
) -> tuple[Change, ...]:
    changed: Changed | None = None
    match refusal.plugin:
        case "NodeResourcesFit":
            if asks_far_too_much(refusal):
                if (kept_off := keep_off(refusal, template, group_id)) is not None:
                    daemon_set, change = kept_off
                    supposed.without[daemon_set] = None
                    return (change,)
                larger = larger_machine(refusal, template.node, group_id)
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
