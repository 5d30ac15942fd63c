"""The full form of a state: the delta that holds everything; and copies for explanations."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from operator import itemgetter

import msgspec
from msgspec.structs import replace

from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.nodes.memory import Memory
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.state import State
from kubetide.nodes.templates.cached import KnownTemplates
from kubetide.objects.meta import Key


def export_state(state: State, keys: Sequence[Key] | None = None) -> Delta:
    """Return the full form: a state built from it decides as this one does.

    ``keys``: those of all pods in order, from a caller that needs them anyway.
    """
    return Delta(
        step=state.step,
        nodes=tuple(state.nodes[name] for name in sorted(state.nodes)),
        pods=tuple(state.pods[key] for key in (sorted(state.pods) if keys is None else keys)),
        replica_sets=tuple(state.replica_sets[key] for key in sorted(state.replica_sets)),
        replication_controllers=None
        if state.replication_controllers is None
        else tuple(one for _, one in sorted(state.replication_controllers.items(), key=itemgetter(0))),
        deployments=tuple(state.deployments[key] for key in sorted(state.deployments)),
        daemon_sets=tuple(state.daemon_sets[key] for key in sorted(state.daemon_sets)),
        stateful_sets=tuple(state.stateful_sets[key] for key in sorted(state.stateful_sets)),
        jobs=tuple(state.jobs[key] for key in sorted(state.jobs)),
        pdbs=tuple(state.pdbs[key] for key in sorted(state.pdbs)),
        namespaces=tuple(state.namespaces[name] for name in sorted(state.namespaces)),
        volumes=state.volumes.export(),
        devices=state.devices.export(),
        capacity=state.capacity.export(),
        unread=(*state.volumes.unread, *state.devices.unread, *state.capacity.unread),
        groups=tuple(state.groups.values()),
        candidates=state.candidates or None,
        intents=state.intents,
        new_pods=state.announced_new_pods or None,
        replacements=state.replacements or None,
        priority_map=state.priority_map if state.priority_map.found else None,
        holds=state.holds,
        live_pods=dict(state.live_pods) or None,
        settings=state.settings,
        memory=state.memory,
    )


def copy_state(state: State) -> State:
    """Return an independent state that decides as this one would at the beginning of a tick."""
    # Objects never change, so both states have the same ones, and their classes are known.
    keys = sorted(state.pods)
    everything = replace(export_state(state, keys), memory=_copied(state.memory))
    made = State()
    made.apply(everything, full=True, keys=keys)
    return made


def with_own_memory(state: State) -> State:
    """Return the same state with a copy of its memory, for evaluations that update only the memory."""
    made = copy.copy(state)
    made.memory = _copied(state.memory)
    return made


def without_learned_facts(state: State) -> State:
    """Return a state that learns from its nodes from the start, and shares all else with this one.

    Of a tick that is open only placements are left in: where these may concern a node, the state is copied.
    """
    if any(is_daemon_set_pod(pod) for pod in state.pending.values()):
        return copy_state(state)
    made = with_own_memory(state)
    made.unlooked = dict.fromkeys(state.nodes)
    made.looked_at = {}
    made.known_templates = KnownTemplates()
    made.template_matrix = None
    return made


def _copied(memory: Memory) -> Memory:
    return msgspec.json.decode(msgspec.json.encode(memory), type=Memory)
