"""The facts of all candidates, updated where pods have changed instead of node by node each tick.

As long as nodes, groups and all that the facts rest on are the same, only nodes with changed pods are looked at again.
"""

from __future__ import annotations

import msgspec

from kubetide.nodes.scale_down.drain_rules import DrainContext
from kubetide.nodes.scale_down.facts import Cache, NodeFacts, Refusal
from kubetide.nodes.scale_down.memory import UnremovableNode
from kubetide.nodes.scale_down.unneeded.eligibility import (
    candidates,
    ignores_daemon_sets,
    local_delay_ends,
    refusal,
)
from kubetide.nodes.scale_down.unneeded.utilization import Utilization
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.ports.cloud import NodeGroup
from kubetide.units.time import Instant


class Candidates(msgspec.Struct):
    """The candidates of a tick.

    Attributes:
        key: What must be the same for the next tick to go on from here.
        at: When they were looked at last.
        stamp: Up to which change of the snapshot's pods.
        groups: The group of each candidate, in name order.
        facts: Of each candidate.
        refused: Why candidates stay whatever their pods are, in name order. Replaced, never changed.
        open: The others.
        valid_until: When the passing of time alone may change something; None for never.
        order: The names as they were last sorted, and what else than the ranks that rested on; None once a rank changes.
    """

    key: tuple[object, ...]
    at: Instant
    stamp: int
    groups: dict[str, NodeGroup]
    facts: dict[str, NodeFacts]
    refused: dict[str, UnremovableNode]
    open: dict[str, None]
    valid_until: Instant | None
    order: tuple[object, list[str]] | None = None


def known_candidates(state: State, now: Instant, cache: Cache, context: DrainContext) -> Candidates:
    """Return what is known of all candidates now."""
    key, stamp = _key(state, now, cache), state.snapshot.pods_stamp
    known = cache.candidates
    if known is not None and key is not None:
        assert isinstance(known, Candidates)
        if known.key == key and known.at <= now and (known.valid_until is None or now < known.valid_until):
            _look_again(known, state, now, cache, context)
            known.at, known.stamp = now, stamp
            return known
    found = Candidates(key or (), now, stamp, candidates(state, now), {}, {}, {}, None)
    for name in found.groups:
        _look(found, found.refused, name, state, now, cache, context)
    cache.candidates = found if key is not None and cache.enabled else None
    return found


def _key(state: State, now: Instant, cache: Cache) -> tuple[object, ...] | None:
    """Return what candidates and their facts rest on but pods; None where that is not known."""
    if state.tick is None:
        return None
    absent: tuple[str, ...] = ()
    if state.tick.upcoming:
        starting = (name for view in state.tick.view.groups.values() for name in view.counts.not_started)
        absent = tuple(name for name in starting if name not in state.snapshot)
    return (
        state.nodes_version,
        state.settings,
        cache.generation,
        tuple(state.memory.scale_down.deletions),
        absent,
        tuple(group for group in state.groups if local_delay_ends(state, group, now) is not None),
    )


def _look_again(known: Candidates, state: State, now: Instant, cache: Cache, context: DrainContext) -> None:
    changed = [name for name in state.snapshot.pods_changed_since(known.stamp) if name in known.facts]
    if not changed:
        return
    refused = dict(known.refused)
    for name in changed:
        _look(known, refused, name, state, now, cache, context)
    if refused.keys() != known.refused.keys():
        refused = {name: refused[name] for name in sorted(refused)}
    known.refused = refused


def _look(
    known: Candidates,
    refused: dict[str, UnremovableNode],
    name: str,
    state: State,
    now: Instant,
    cache: Cache,
    context: DrainContext,
) -> None:
    group = known.groups[name]
    ignored = ignores_daemon_sets(group, state.settings)
    fact = cache.facts(state.snapshot, name, context, ignore_daemon_sets=ignored)
    before = known.facts.get(name)
    if before is None or before.rank != fact.rank:
        known.order = None
    known.facts[name] = fact
    for until in (fact.valid_until, fact.deleting_until):
        if until is not None and until > now and (known.valid_until is None or until < known.valid_until):
            known.valid_until = until
    verdict = _refused(fact, group, cache, state.settings, now)
    if verdict is None:
        refused.pop(name, None)
        known.open[name] = None
    else:
        refused[name] = verdict
        known.open.pop(name, None)


def _refused(
    facts: NodeFacts, group: NodeGroup, cache: Cache, settings: Settings, now: Instant
) -> UnremovableNode | None:
    """Return why the node stays whatever its pods are, or None."""
    name = facts.node.metadata.name
    known = cache.refusals.get(name)
    if known is not None and known.facts is facts and known.group is group:
        return known.verdict
    refused = refusal(facts, group, settings, now)
    verdict = None
    if refused is not None:
        seen = facts.utilization if refused.reason == "NotUnderutilized" else None
        verdict = unremovable(facts, group, refused.reason, refused.detail, seen)
    if facts.deleting_until is None or facts.deleting_until <= now:
        cache.refusals[name] = Refusal(facts, group, verdict)
    return verdict


def unremovable(
    facts: NodeFacts, group: NodeGroup, reason: str, detail: str, utilization: Utilization | None
) -> UnremovableNode:
    """Return the verdict on a node that stays; ``reason`` is upstream's word."""
    return UnremovableNode(
        node=facts.node.metadata.name,
        group=group.id,
        reason=reason,
        detail=detail,
        utilization=utilization.value if utilization else None,
        resource=utilization.resource if utilization else "",
    )
