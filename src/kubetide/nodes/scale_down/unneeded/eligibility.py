"""Which nodes may be considered for removal.

Source: Cluster Autoscaler, scale-down candidates and eligibility; the order of the questions is upstream's.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from kubetide.nodes.facts.nodes import TO_BE_DELETED, duration_or, readiness
from kubetide.nodes.scale_down.facts import NodeFacts
from kubetide.nodes.scale_down.names import SCALE_DOWN_DISABLED
from kubetide.nodes.scale_down.unneeded.utilization import go_float, has_gpu
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.node import Node
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Duration, Instant, after, hours

_BEFORE_START: Duration = hours(1)


class Refused(msgspec.Struct, frozen=True):
    """Why a node is not considered: upstream's word, and one sentence with what was seen."""

    reason: str
    detail: str = ""


def candidates(state: State, now: Instant) -> dict[str, NodeGroup]:
    """Return the nodes that may be considered, in name order, with their groups.

    Nodes in groups above their minimum that the cloud has reported anew, that are in the snapshot and not already on their way out; with
    --scale-down-delay-type-local without those of groups inside a delay of their own.
    """
    memory = state.memory.scale_down
    may_shrink = _groups_that_may_shrink(state, now)
    found: dict[str, NodeGroup] = {}
    for name in sorted(state.nodes):
        group = may_shrink.get(state.group_of(name) or "")
        if group is not None and name in state.snapshot and name not in memory.deletions:
            found[name] = group
    return found


def any_leaving(state: State, now: Instant) -> bool:
    """Return whether a node on its way out would be considered but for that: for upstream it is a candidate still."""
    may_shrink = _groups_that_may_shrink(state, now)
    leaving = state.memory.scale_down.deletions
    return any(state.group_of(name) in may_shrink for name in leaving if name in state.snapshot)


def left_out(state: State, now: Instant) -> dict[str, NodeGroup]:
    """Return the nodes that are no candidates only because they are on their way out, or in a delay of their group."""
    above = _groups_above_minimum(state)
    found: dict[str, NodeGroup] = {}
    delayed = [group for group in above if local_delay_ends(state, group, now) is not None]
    in_delay = [name for group in delayed for name in state.nodes_by_group().get(group, ())]
    for name in (*state.memory.scale_down.deletions, *in_delay):
        group = above.get(state.group_of(name) or "")
        if group is not None and name in state.snapshot:
            found[name] = group
    return found


def _groups_that_may_shrink(state: State, now: Instant) -> dict[str, NodeGroup]:
    above = _groups_above_minimum(state)
    return {name: group for name, group in above.items() if local_delay_ends(state, name, now) is None}


def _groups_above_minimum(state: State) -> dict[str, NodeGroup]:
    return {
        group.id: group
        for group in state.groups.values()
        if group.target_size > group.min_size and not group.stale
    }


def local_delay_ends(state: State, group_id: str, now: Instant) -> Instant | None:
    """Return when the group's own delay ends, or None if there is none.

    Source: --scale-down-delay-type-local, which takes the place of the delays of the whole cluster.
    """
    settings, memory = state.settings, state.memory.scale_down
    if not settings.scale_down_delay_type_local:
        return None
    ends = [
        after(since, delay)
        for since, delay in (
            (state.memory.last_scale_up_of.get(group_id), settings.scale_down_delay_after_add),
            (memory.last_delete_of.get(group_id), settings.scale_down_delay_after_delete),
            (memory.last_failure_of.get(group_id), settings.scale_down_delay_after_failure),
        )
        if since is not None
    ]
    return max((end for end in ends if end > now), default=None)


class Delay(NamedTuple):
    """A delay in which nothing is removed: after ``what``, at ``since`` where that is known, else before the start."""

    what: str
    since: Instant
    known: bool
    length: Duration

    @property
    def ends(self) -> Instant:
        """When it is over."""
        return after(self.since, self.length)


def cluster_delays(state: State) -> list[Delay]:
    """Return the delays of the whole cluster, those that are over as well; none where groups have their own."""
    settings, memory = state.settings, state.memory.scale_down
    if settings.scale_down_delay_type_local:
        return []
    started = state.memory.started
    # As upstream, a process begins as if all three had happened an hour before: of a longer delay the rest holds.
    at_start = None if started is None else Instant(started - _BEFORE_START)
    return [
        Delay(what, since, known is not None, length)
        for what, known, length in (
            ("scale-up", state.memory.last_scale_up, settings.scale_down_delay_after_add),
            ("failure", memory.last_failure, settings.scale_down_delay_after_failure),
            ("deletion", memory.last_delete, settings.scale_down_delay_after_delete),
        )
        if (since := at_start if known is None else known) is not None
    ]


def ignores_daemon_sets(group: NodeGroup, settings: Settings) -> bool:
    """Return whether the group's utilization leaves DaemonSet pods out."""
    own = group.options.ignore_daemonsets_utilization if group.options else None
    return settings.ignore_daemonsets_utilization if own is None else own


def threshold(group: NodeGroup, settings: Settings, *, gpu: bool) -> float:
    """Return the utilization up to which a node of the group counts as underutilized."""
    options = group.options
    if gpu:
        own = options.scale_down_gpu_utilization_threshold if options else None
        return settings.scale_down_gpu_utilization_threshold if own is None else own
    own = options.scale_down_utilization_threshold if options else None
    return settings.scale_down_utilization_threshold if own is None else own


def unneeded_time(group: NodeGroup, settings: Settings) -> Duration:
    """Return how long a ready node of the group must be unneeded; it must be longer than this."""
    own = group.options.scale_down_unneeded_time if group.options else None
    return duration_or(own, settings.scale_down_unneeded_time)


def unready_time(group: NodeGroup, settings: Settings) -> Duration:
    """Return how long an unready node of the group must be unneeded; it must be longer than this."""
    own = group.options.scale_down_unready_time if group.options else None
    return duration_or(own, settings.scale_down_unready_time)


def is_disabled(node: Node) -> bool:
    """Return whether the owner has excluded the node from removal."""
    return (node.metadata.annotations or {}).get(SCALE_DOWN_DISABLED) == "true"


def refusal(facts: NodeFacts, group: NodeGroup, settings: Settings, now: Instant) -> Refused | None:
    """Return why the node cannot be removed whatever its pods are, or None."""
    node = facts.node
    if facts.deleting_until is not None and now < facts.deleting_until:
        return Refused("CurrentlyBeingDeleted", f"taint {TO_BE_DELETED} is younger than 5 minutes")
    if is_disabled(node):
        return Refused("ScaleDownDisabledAnnotation", f'annotation {SCALE_DOWN_DISABLED} is "true"')
    if facts.utilization is None:
        return Refused("UnexpectedError", facts.error)
    if not settings.scale_down_unready_enabled and readiness(node, settings):
        return Refused(
            "ScaleDownUnreadyDisabled", "the node is not ready and --scale-down-unready-enabled is off"
        )
    limit = threshold(group, settings, gpu=has_gpu(node, settings.gpu_label))
    if facts.utilization.value > limit:
        used = _rounded(facts.utilization.value, limit)
        return Refused(
            "NotUnderutilized",
            f"{facts.utilization.resource} utilization {used} is above the threshold {go_float(limit)}",
        )
    return None


def _rounded(used: float, limit: float) -> str:
    """Three digits are enough for a person, unless they make it look as if the limit were kept."""
    text = f"{used:.3g}"
    return text if float(text) > limit else go_float(used)
