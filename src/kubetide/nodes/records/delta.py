"""The recorded input of one step of a tick: the delta.

Objects come slimmed (no heartbeat times, no statuses of workloads), so that a quiet minute has an
empty delta.

A tick goes through steps; each is apply, decide, act, absorb:

* ``update``: failed and unregistered instances, wrong sizes; goes on to scale-up in the same
  decision when there is nothing of this to do;
* ``scale_up``: demand against free capacity, options, expander, increases;
* ``place``: places for the next pods, where they are looked at part by part (graceful degradation);
* ``pack``: options of the next groups, where there are many;
* ``choose``: which option it is, once the expander in a process of its own has answered;
* ``salvo``: another increase for the pods that the last one leaves, where several a tick are allowed;
* ``scale_down``: unneeded nodes, soft taints, the choice of nodes to delete;
* ``simulate``: the next removals, where there are many pods on candidates;
* ``consolidate``: nodes that are replaced by cheaper ones or merged, where that is enabled;
* ``min_size``: groups below their minimum, where that is enforced;
* ``remove_groups``: empty groups that the loop made, where it may make groups;
* ``actuate``: one move of each deletion in flight; has ticks of its own.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.nodes.decision import NextStep
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.nodes.facts.devices import DeviceChanges
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.memory import Learned, Memory
from kubetide.nodes.settings import Settings
from kubetide.objects.batch import Job
from kubetide.objects.meta import Key
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController
from kubetide.plan.board import Intent, Replacement, RequestsByController
from kubetide.ports.cloud import GroupCandidate, NodeGroup
from kubetide.units.time import ZERO, Duration

Step = Literal["update", NextStep, "actuate"]


class Gone(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Names of deleted objects."""

    nodes: tuple[str, ...] = ()
    pods: tuple[Key, ...] = ()
    replica_sets: tuple[Key, ...] = ()
    replication_controllers: tuple[Key, ...] = ()
    deployments: tuple[Key, ...] = ()
    daemon_sets: tuple[Key, ...] = ()
    stateful_sets: tuple[Key, ...] = ()
    jobs: tuple[Key, ...] = ()
    pdbs: tuple[Key, ...] = ()
    namespaces: tuple[str, ...] = ()
    volumes: tuple[KnownKey, ...] = ()
    devices: tuple[KnownKey, ...] = ()
    capacity: tuple[KnownKey, ...] = ()


class Unwritten(msgspec.Struct, frozen=True, array_like=True, order=True):
    """A PodTemplate of a CapacityBuffer that could not be written; ``error`` is empty where writing was withheld on purpose."""

    namespace: str
    name: str
    error: str = ""


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The parts of a state that decisions and outcomes change; all else in it was gathered.

    Attributes:
        capacity: Requests for capacity and such, with the statuses that the loop gives them; None where there are none.
    """

    groups: tuple[NodeGroup, ...]
    memory: Memory
    capacity: CapacityChanges | None = None


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The changes since the last step; the full form holds everything.

    Attributes:
        step: Which step of the tick is to be decided.
        groups: All node groups, ordered by id; None when they are as before.
        candidates: All groups that the cloud could make, where the loop may ask for them; None when they are as before.
        intents: All intents on the board; None when they are as before.
        new_pods: All requests of new pods on the board; None when they are as before.
        replacements: All replacements of pods on the board; None when they are as before.
        priority_map: The ConfigMap of the expander ``priority``; None when it is as before, or not in use.
        volumes: Claims, volumes, storage classes and what CSI drivers report; None when they are as before. They
            are read from the first pod with a claim on, and until then pods are placed as if they had none.
        replication_controllers: Those that are new or have changed; None when they are as before. They are read
            from the first pod or CapacityBuffer on that has one, and until then they are taken to exist.
        devices: Slices, claims for devices and their classes, in the same way.
        capacity: Requests for capacity and the PodTemplates that they name; read where the flags say so.
        unwritten: PodTemplates whose last copy could not be written, with the errors: they are copied again.
        unread: Kinds of these that cannot be read, by plural name; always the whole list in a tick's first step.
        holds: Why scale-down must hold (a cache too old ...), as sentences; always the whole list.
        elapsed: How long the tick has taken so far, for limits of time; 0 in its first step.
        live_pods: Pods read straight from the API server for nodes about to be deleted; only for this step.
        learned: What an earlier process has learned of machines; with the first delta that could read it.
        settings, memory: Full form only.
        checkpoint: What earlier decisions left behind, from time to time between two full forms (``State.resume``).
    """

    step: Step = "update"
    nodes: tuple[Node, ...] = ()
    pods: tuple[Pod, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] | None = None
    deployments: tuple[Deployment, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    jobs: tuple[Job, ...] = ()
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    volumes: VolumeChanges | None = None
    devices: DeviceChanges | None = None
    capacity: CapacityChanges | None = None
    unwritten: tuple[Unwritten, ...] = ()
    unread: tuple[str, ...] = ()
    gone: Gone = Gone()
    groups: tuple[NodeGroup, ...] | None = None
    candidates: tuple[GroupCandidate, ...] | None = None
    intents: tuple[Intent, ...] | None = None
    new_pods: RequestsByController | None = None
    replacements: tuple[Replacement, ...] | None = None
    priority_map: PriorityMap | None = None
    holds: tuple[str, ...] = ()
    elapsed: Duration = ZERO
    live_pods: dict[str, tuple[Pod, ...]] | None = None
    learned: Learned | None = None
    settings: Settings | None = None
    memory: Memory | None = None
    checkpoint: Checkpoint | None = None
