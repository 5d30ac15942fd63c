"""What the checks look at: the objects of a cluster at one time, frozen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec.structs import replace

from kubetide.doctor.workloads import Workload, workloads_of
from kubetide.elastic.sections import as_hpa
from kubetide.nodes.facts.capacity import CapacityChanges
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.facts.volumes import VolumeChanges
from kubetide.nodes.memory import GroupLearned
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, State
from kubetide.objects.batch import Job
from kubetide.objects.capacity import CapacityBuffer, PodTemplateObject, ProvisioningRequest
from kubetide.objects.cluster import Lease
from kubetide.objects.elastic import ElasticWorkload
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import (
    CRON_HPAS,
    ELASTIC_WORKLOADS,
    HPCS,
    SCALED_OBJECTS,
    TKESTACK_CRON_HPAS,
    Kind,
)
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from kubetide.objects.timetables import (
    CronHorizontalPodAutoscaler,
    CronHpa,
    HorizontalPodCronscaler,
    ScaledObject,
)
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController
from kubetide.ports.cloud import NodeGroup
from kubetide.schedules.state import State as Schedules
from kubetide.schedules.state import state_of
from kubetide.units.time import Instant
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

_MOST_OWNERS = 2
"""A pod's ReplicaSet and its Deployment; owners in a circle end there, too."""


class GroupStatus(NamedTuple):
    """A node group as the status ConfigMap of a node autoscaler shows it."""

    name: str
    min_size: int = 0
    max_size: int = 0
    target_size: int = 0
    scale_up: str = ""
    """``NoActivity``, ``InProgress``, ``Backoff`` or ``Unhealthy``."""
    error_code: str = ""
    error_message: str = ""
    since: Instant | None = None
    """Since when ``scale_up`` has been so."""
    registered: int = 0
    unregistered: int = 0
    """Machines without a node, those that are overdue included."""


class Server(NamedTuple):
    """A controller that wrote an HPA's status, and when last by the API server's clock."""

    hpa: Key
    manager: str
    at: Instant


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The objects of a cluster at one time.

    Attributes:
        pod_templates: Those that requests and buffers name; read only where there are any of these.
        groups: The cloud's node groups; empty where no cloud is asked.
        scaling_policies: The cloud's own policies that change their sizes, by group; ``scaling_policies_error`` why these are not known.
        group_statuses: What a node autoscaler wrote of them.
        priorities: The ConfigMap of the expander ``priority``; None where it cannot be read.
        learned: What nodes of each group have shown, by the node loop's ConfigMap.
        missing_scales: Targets of HPAs and time tables of custom kinds that are not there, as (kind, namespace, name).
        servers: The controllers that write statuses of HPAs, this program's included.
        leases: Those by which node autoscalers elect a leader.
        unread: Why a kind could not be read, by its plural name; nothing is found missing among these.
        unread_objects: Why an object could not be read, by its kind and place.
        settings, recommender: Of the node loop, and of the loop that recommends requests.
    """

    now: Instant
    pods: tuple[Pod, ...] = ()
    nodes: tuple[Node, ...] = ()
    namespaces: tuple[Namespace, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    replica_sets: tuple[ReplicaSet, ...] = ()
    stateful_sets: tuple[StatefulSet, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    replication_controllers: tuple[ReplicationController, ...] = ()
    jobs: tuple[Job, ...] = ()
    hpas: tuple[HorizontalPodAutoscaler, ...] = ()
    vpas: tuple[VerticalPodAutoscaler, ...] = ()
    elastic: tuple[ElasticWorkload, ...] = ()
    hpcs: tuple[HorizontalPodCronscaler, ...] = ()
    cron_hpas: tuple[CronHorizontalPodAutoscaler, ...] = ()
    tkestack_cron_hpas: tuple[CronHpa, ...] = ()
    scaled_objects: tuple[ScaledObject, ...] = ()
    pdbs: tuple[PodDisruptionBudget, ...] = ()
    volumes: tuple[PersistentVolume, ...] = ()
    claims: tuple[PersistentVolumeClaim, ...] = ()
    storage_classes: tuple[StorageClass, ...] = ()
    requests: tuple[ProvisioningRequest, ...] = ()
    buffers: tuple[CapacityBuffer, ...] = ()
    pod_templates: tuple[PodTemplateObject, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    scaling_policies: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))
    scaling_policies_error: str = ""
    group_statuses: tuple[GroupStatus, ...] = ()
    priorities: PriorityMap | None = None
    learned: Mapping[str, GroupLearned] = field(default_factory=lambda: MappingProxyType({}))
    missing_scales: frozenset[tuple[str, str, str]] = frozenset()
    servers: tuple[Server, ...] = ()
    leases: tuple[Lease, ...] = ()
    unread: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    unread_objects: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    settings: Settings = field(default_factory=Settings)
    recommender: RecommenderSettings = field(default_factory=RecommenderSettings)

    @cached_property
    def every_hpa(self) -> tuple[HorizontalPodAutoscaler, ...]:
        """HPAs, and horizontal sections of ElasticWorkloads with the bounds that stand in them."""
        # The schedule may hold a workload at one size for a while, which is no mistake.
        sections = (as_hpa(replace(one, spec=replace(one.spec, schedule=None))) for one in self.elastic)
        shown = (replace(one, kind=ELASTIC_WORKLOADS.kind) for one in sections if one is not None)
        return (*self.hpas, *shown)

    @cached_property
    def workloads(self) -> Mapping[tuple[str, str, str], Workload]:
        """What makes pods, by kind, namespace and name."""
        return workloads_of(
            (
                *self.deployments,
                *self.replica_sets,
                *self.stateful_sets,
                *self.daemon_sets,
                *self.replication_controllers,
                *self.jobs,
            )
        )

    @cached_property
    def without_nodes(self) -> frozenset[tuple[str, str, str]]:
        """The workloads that have pods of which none has a node, by kind, namespace and name."""
        waiting, placed = set[tuple[str, str, str]](), set[tuple[str, str, str]]()
        for pod in self.pods:
            owner = controller_of(pod.metadata)
            for _ in range(_MOST_OWNERS):
                if owner is None:
                    break
                key = owner.kind, pod.metadata.namespace, owner.name
                (placed if pod.spec.node_name else waiting).add(key)
                made = self.workloads.get(key)
                owner = None if made is None else made.owner
        return frozenset(waiting - placed)

    @cached_property
    def time_tables(self) -> Schedules:
        """The state of a loop of time tables that has just started and sees all of them."""
        found: dict[Kind[Any], tuple[Any, ...]] = {
            HPCS: self.hpcs,
            CRON_HPAS: self.cron_hpas,
            TKESTACK_CRON_HPAS: self.tkestack_cron_hpas,
            SCALED_OBJECTS: self.scaled_objects,
            ELASTIC_WORKLOADS: self.elastic,
        }
        return state_of({kind.kind: objects for kind, objects in found.items()})

    @cached_property
    def node_state(self) -> State:
        """The state of a node loop that has just started and sees all of this."""
        state = State()
        capacity = CapacityChanges(
            pod_templates=self.pod_templates,
            provisioning_requests=self.requests,
            capacity_buffers=self.buffers,
        )
        volumes = VolumeChanges(
            persistent_volumes=self.volumes, claims=self.claims, storage_classes=self.storage_classes
        )
        state.apply(
            Delta(
                nodes=self.nodes,
                pods=self.pods,
                replica_sets=self.replica_sets,
                replication_controllers=self.replication_controllers
                if "replicationcontrollers" not in self.unread
                else None,
                deployments=self.deployments,
                daemon_sets=self.daemon_sets,
                stateful_sets=self.stateful_sets,
                jobs=self.jobs,
                pdbs=self.pdbs,
                namespaces=self.namespaces,
                volumes=volumes if self.claims else None,
                capacity=capacity if self.requests or self.buffers else None,
                groups=tuple(sorted(self.groups, key=lambda group: group.id)),
                settings=self._as_served(),
            ),
            full=True,
        )
        return state

    def _as_served(self) -> Settings:
        """Return the settings of the node loop, as some node loop serves what is there.

        Machines on their way were asked for by it: pods that they are for wait for them, and need no others. Requests and
        buffers with conditions are served by it.
        """
        requests = any(one.status.conditions for one in self.requests)
        buffers = any(one.status.conditions for one in self.buffers)
        settings = self.settings
        return replace(
            settings,
            recover_scale_ups=True,
            enable_provisioning_requests=settings.enable_provisioning_requests or requests,
            capacity_buffer_pod_injection_enabled=settings.capacity_buffer_pod_injection_enabled or buffers,
        )

    def reads(self, *plurals: str) -> bool:
        """Return whether all objects of these kinds are known, so that one that is not there is missing."""
        return not any(plural in self.unread for plural in plurals)
