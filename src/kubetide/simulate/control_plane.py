"""The embedded controllers of a run, and their shared caches."""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from kubetide.embedded.apiserver.store import Store
from kubetide.embedded.controllers import (
    CronJobController,
    DaemonSetController,
    DeploymentController,
    DeviceCache,
    DisruptionController,
    JobController,
    PodChooser,
    PodIndex,
    ReplicaSetController,
    ResourceClaimController,
    Scheduler,
    StatefulSetController,
    TaintEvictionController,
    VolumeCache,
    VolumeController,
)
from kubetide.objects.kinds import (
    CONTROLLER_REVISIONS,
    CRON_JOBS,
    DAEMON_SETS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    REPLICA_SETS,
    SERVICES,
    STATEFUL_SETS,
)
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.watching import Informer


class ControlPlane:
    """Scheduler and controllers; other parts of the run read their caches.

    Args:
        cluster: Their way to the API server.
        clock: The time.
        seed: What is drawn at random comes from it.
        store: Tells when volumes and devices are used first.
        writes_events: Whether each pod has the events that only people and clients read.
        minor: The minor version of Kubernetes whose scheduler binds the pods.
    """

    def __init__(
        self, cluster: Cluster, clock: Clock, *, seed: int, store: Store, writes_events: bool, minor: int
    ) -> None:
        self._minor = minor
        self._cluster, self._clock, self._seed, self._writes_events = cluster, clock, seed, writes_events
        self.pods = Informer(cluster, PODS, clock)
        self.nodes = Informer(cluster, NODES, clock)
        self.deployments = Informer(cluster, DEPLOYMENTS, clock)
        self.replica_sets = Informer(cluster, REPLICA_SETS, clock)
        self.daemon_sets = Informer(cluster, DAEMON_SETS, clock)
        self.stateful_sets = Informer(cluster, STATEFUL_SETS, clock)
        self.revisions = Informer(cluster, CONTROLLER_REVISIONS, clock)
        self.jobs = Informer(cluster, JOBS, clock)
        self.cron_jobs = Informer(cluster, CRON_JOBS, clock)
        self.pdbs = Informer(cluster, PDBS, clock)
        self.services = Informer(cluster, SERVICES, clock)
        self.namespaces = Informer(cluster, NAMESPACES, clock)
        self._volumes, self._devices = VolumeCache(cluster, clock), DeviceCache(cluster, clock)
        self._volumes.start_when_stored(store)
        self._devices.start_when_stored(store)

    @property
    def informers(self) -> tuple[Informer[Any], ...]:
        """The caches, which must be synced before anything else begins."""
        return (
            self.pods,
            self.nodes,
            self.deployments,
            self.replica_sets,
            self.daemon_sets,
            self.stateful_sets,
            self.revisions,
            self.jobs,
            self.cron_jobs,
            self.pdbs,
            self.services,
            self.namespaces,
        )

    def controllers(self, scheduler_profile: str) -> list[Coroutine[Any, Any, None]]:
        """Return the scheduler with this profile and all controllers, to be run until cancelled."""
        cluster, clock, seed, pods, nodes = self._cluster, self._clock, self._seed, self.pods, self.nodes
        volumes, devices = self._volumes, self._devices
        index, writes_events = PodIndex(pods), self._writes_events
        scheduler = partial(
            Scheduler, cluster, clock, pods=pods, nodes=nodes, writes_events=writes_events, minor=self._minor
        )
        chooser = PodChooser(scheduler_profile, seed, (self.replica_sets, self.stateful_sets), self.services)
        return [
            scheduler(
                namespaces=self.namespaces,
                budgets=self.pdbs,
                volumes=volumes,
                devices=devices,
                chooser=chooser,
            ).run(),
            ReplicaSetController(
                cluster,
                clock,
                seed,
                replica_sets=self.replica_sets,
                pods=pods,
                pod_index=index,
                writes_events=writes_events,
            ).run(),
            DeploymentController(
                cluster,
                clock,
                deployments=self.deployments,
                replica_sets=self.replica_sets,
                pods=pods,
                pod_index=index,
            ).run(),
            DaemonSetController(
                cluster,
                clock,
                seed,
                daemon_sets=self.daemon_sets,
                nodes=nodes,
                pods=pods,
                pod_index=index,
                writes_events=writes_events,
            ).run(),
            StatefulSetController(
                cluster,
                clock,
                stateful_sets=self.stateful_sets,
                revisions=self.revisions,
                pods=pods,
                pod_index=index,
            ).run(),
            JobController(cluster, clock, seed, jobs=self.jobs, pods=pods, pod_index=index).run(),
            CronJobController(cluster, clock, cron_jobs=self.cron_jobs, jobs=self.jobs).run(),
            DisruptionController(
                cluster,
                clock,
                pdbs=self.pdbs,
                pods=pods,
                replica_sets=self.replica_sets,
                deployments=self.deployments,
                stateful_sets=self.stateful_sets,
            ).run(),
            TaintEvictionController(cluster, clock, pods=pods, nodes=nodes).run(),
            volumes.run(),
            VolumeController(cluster, clock, volumes=volumes, pods=pods, nodes=nodes).run(),
            devices.run(),
            ResourceClaimController(cluster, clock, devices=devices, pods=pods).run(),
        ]
