"""The input of drain rules: time, settings, budgets and the controllers of pods."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from kubetide.nodes.scale_down.drain_rules.base import DrainContext, Owner
from kubetide.nodes.scale_down.drain_rules.named import rules_with
from kubetide.nodes.scale_down.unneeded.pdbs import Allowances
from kubetide.nodes.state import State
from kubetide.objects.meta import Key
from kubetide.units.time import Instant


def owners_of(state: State) -> Mapping[str, Mapping[Key, Owner]]:
    """Return the controllers that the loop watches, by kind."""
    found: dict[str, Mapping[Key, Owner]] = {
        "ReplicaSet": state.replica_sets,
        "DaemonSet": state.daemon_sets,
        "StatefulSet": state.stateful_sets,
        "Job": state.jobs,
    }
    if state.replication_controllers is not None:
        found["ReplicationController"] = state.replication_controllers
    return found


def drain_context(state: State, now: Instant, allowances: Allowances) -> DrainContext:
    """Return the context of drain rules that move pods."""
    return DrainContext(
        now=now,
        settings=state.settings,
        allowances=allowances,
        owners=owners_of(state),
        rules=rules_with(state.settings.drain_rules),
    )


def empty_context(state: State, now: Instant) -> DrainContext:
    """Return the context of drain rules about an empty node: controllers and budgets do not matter, as no pod is moved."""
    return replace(drain_context(state, now, Allowances.of({})), owners={})
