"""Gathers the input of a tick: changed objects, node groups, intents, and reasons to hold scale-down."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from kubetide.nodes.capacity.buffers.sources import names_replication_controller
from kubetide.nodes.controller.board import with_announced
from kubetide.nodes.controller.by_key import ByKey
from kubetide.nodes.controller.capacity import CapacityGatherer
from kubetide.nodes.controller.config_maps import ConfigMapReader
from kubetide.nodes.facts.devices import (
    DEVICE_KIND_OF,
    DeviceChanges,
    asks_for_claims,
    asks_for_extended,
    slim_device_object,
)
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.facts.slim_pods import PodSlimmer
from kubetide.nodes.facts.slimming import (
    keep_node,
    slim_daemon_set,
    slim_deployment,
    slim_job,
    slim_namespace,
    slim_node,
    slim_pdb,
    slim_replica_set,
    slim_replication_controller,
    slim_stateful_set,
)
from kubetide.nodes.facts.volumes import KIND_OF, VolumeChanges
from kubetide.nodes.facts.volumes import slim as slim_volume_object
from kubetide.nodes.state import Delta, Gone, State, Step
from kubetide.objects.kinds import (
    DAEMON_SETS,
    DEPLOYMENTS,
    DEVICE_KINDS,
    JOBS,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    VOLUME_KINDS,
    Kind,
)
from kubetide.objects.meta import Key, controller_of
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.workload import ReplicationController
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupCandidate, NodeGroup
from kubetide.ports.cluster import Cluster, as_remote
from kubetide.scheduling.pods.volume_use import claims_of
from kubetide.watching import Caches, Feed, Informer, holds_of

T = TypeVar("T")


class _Source(NamedTuple):
    informer: Informer[Any]
    feed: Feed[Any]


class Gatherer:
    """Reads the caches and builds deltas relative to ``known``."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: Cloud,
        clock: Clock,
        board: Board | None,
        known: State,
        caches: Caches,
    ) -> None:
        self._cluster = cluster
        self._remote = as_remote(cluster) is not None
        self._cloud = cloud
        self._gpu_label = cloud.gpu_label
        self._clock = clock
        self._board = board or Board()
        self._known = known
        self._caches = caches
        self._pods = PodSlimmer()
        self._trims: dict[str, Callable[[Any], Any]] = {"pods": self._pods.keep, "nodes": keep_node}
        self._pod_keys: tuple[Key, ...] = ()
        self._sources: dict[str, _Source] = {}
        self._reads_volumes = False
        self._reads_devices = False
        self._looked_for_devices = False
        self.capacity = CapacityGatherer(caches, known)
        self._midway = False
        self.config_maps = ConfigMapReader(cluster)
        self.anew = False
        """Whether the last delta holds all that the caches have, for a state that knows nothing."""
        kinds: tuple[Kind[Any], ...] = (
            PODS,
            NODES,
            REPLICA_SETS,
            DEPLOYMENTS,
            DAEMON_SETS,
            STATEFUL_SETS,
            JOBS,
            PDBS,
            NAMESPACES,
        )
        for kind in kinds:
            self._open(kind)
        self.pods: Informer[Pod] = self._sources[PODS.plural].informer
        self.nodes: Informer[Node] = self._sources[NODES.plural].informer

    async def synced(self) -> None:
        """Return once every cache has had its first list; Deployments may be refused, as upstream's chart grants none."""
        for source in tuple(self._sources.values()):
            informer = source.informer
            await (informer.answered() if informer.kind is DEPLOYMENTS else informer.synced())

    async def begin(self) -> Delta:
        """Return the delta of a tick's first step. Raises CloudError, ApiError.

        Where the delta before was not ``finished`` nobody knows what came of it: then this one is of everything,
        and what is known is forgotten. So it is where the cloud reports another label of GPUs, as one does that did
        not answer at the start: much of what is known was made by it.
        """
        self._known.phases.begin("cloudProviderRefresh")
        groups = tuple(await self._cloud.refresh())
        other_label = self._cloud.gpu_label != self._gpu_label
        if other_label:
            self._gpu_label = self._cloud.gpu_label
            self._known.settings = replace(self._known.settings, gpu_label=self._gpu_label)
        candidates: tuple[GroupCandidate, ...] | None = None
        if self._known.settings.node_autoprovisioning_enabled:
            candidates = tuple(await self._cloud.group_candidates())
        self._known.phases.end("cloudProviderRefresh")
        learned = await self.config_maps.learned(self._known.settings)
        if self._midway or other_label:
            self._begin_anew()
        priority_map = await self.config_maps.priority_map(self._known.settings)
        delta = await self._changes("update", groups, priority_map=priority_map)
        if candidates is not None and candidates != self._known.candidates:
            delta = replace(delta, candidates=candidates)
        return delta if learned is None else replace(delta, learned=learned)

    async def actuation(self, read_pods: Sequence[str]) -> Delta:
        """Return the delta of a step of deletions; pods of ``read_pods`` come from the API server. Raises ApiError."""
        live = {name: await self._pods_on(name) for name in read_pods}
        return await self._changes("actuate", None, live)

    def finished(self) -> None:
        """Note that the tick of the last delta has ended."""
        self._midway = self.anew = False

    @property
    def failed_midway(self) -> bool:
        """Whether the tick of the last delta has not ended."""
        return self._midway

    def _begin_anew(self) -> None:
        self.anew = True
        self._known.forget()
        for name, source in self._sources.items():
            source.informer.close_feed(source.feed)
            self._sources[name] = _Source(source.informer, source.informer.feed())

    def pod_keys(self) -> tuple[Key, ...]:
        """Return the keys of the last delta's pods as the cache holds them; only the first call returns them."""
        keys, self._pod_keys = self._pod_keys, ()
        return keys

    async def _changes(
        self,
        step: Step,
        groups: tuple[NodeGroup, ...] | None,
        live: dict[str, tuple[Pod, ...]] | None = None,
        priority_map: PriorityMap | None = None,
    ) -> Delta:
        known = self._known
        self._midway = True
        objects = Delta(step=step, gone=Gone()) if self._has_nothing_new() else await self._objects(step)
        return replace(
            with_announced(objects, self._board, known),
            unread=self._unread(),
            groups=groups if groups is not None and groups != tuple(known.groups.values()) else None,
            priority_map=priority_map if priority_map != known.priority_map else None,
            holds=self._holds(),
            live_pods=live,
        )

    def _has_nothing_new(self) -> bool:
        """Return whether all objects are as they were when the last delta was made."""
        begins = (
            REPLICATION_CONTROLLERS.plural in self._sources and self._known.replication_controllers is None
        )
        if begins or self.anew or self.capacity.may_have_changed:
            return False
        return all(not source.feed.changed for source in self._sources.values())

    async def _objects(self, step: Step) -> Delta:
        known = self._known
        keys, pods, gone_pods = self._changed("pods", known.pods, self._pods.slim)
        self._pod_keys = tuple(key for key, pod in zip(keys, pods, strict=True) if not is_finished(pod))
        replica_sets, gone_replica_sets = self._take("replicasets", known.replica_sets, slim_replica_set)
        deployments, gone_deployments = self._take("deployments", known.deployments, slim_deployment)
        daemon_sets, gone_daemon_sets = self._take("daemonsets", known.daemon_sets, slim_daemon_set)
        stateful_sets, gone_stateful_sets = self._take("statefulsets", known.stateful_sets, slim_stateful_set)
        jobs, gone_jobs = self._take("jobs", known.jobs, slim_job)
        pdbs, gone_pdbs = self._take("poddisruptionbudgets", known.pdbs, slim_pdb)
        nodes, gone_nodes = self._take("nodes", ByKey(known.nodes), slim_node)
        namespaces, gone_namespaces = self._take("namespaces", ByKey(known.namespaces), slim_namespace)
        first = self.anew and self._reads_volumes
        if not self._reads_volumes and any(pod.spec.volumes and claims_of(pod) for pod in pods):
            await self._begin_with_volumes()
            first = True
        volumes, gone_volumes = self._volumes()
        first_devices = await self._begins_with_devices(pods) or (self.anew and self._reads_devices)
        devices, gone_devices = self._devices()
        capacity, gone_capacity, unwritten = await self.capacity.changes(step, anew=self.anew)
        needed = any(map(_has_replication_controller, pods)) or names_replication_controller(capacity)
        controllers, gone_controllers = await self._replication_controllers(needed=needed)
        return Delta(
            step=step,
            nodes=nodes,
            pods=tuple(pod for pod in pods if not is_finished(pod)),
            replica_sets=replica_sets,
            replication_controllers=controllers,
            deployments=deployments,
            daemon_sets=daemon_sets,
            stateful_sets=stateful_sets,
            jobs=jobs,
            pdbs=pdbs,
            namespaces=namespaces,
            volumes=volumes if first or volumes != VolumeChanges() else None,
            devices=devices if first_devices or devices != DeviceChanges() else None,
            capacity=capacity,
            unwritten=unwritten,
            gone=Gone(
                nodes=tuple(name for _, name in gone_nodes),
                pods=(*gone_pods, *_finished(pods, known.pods)),
                replica_sets=gone_replica_sets,
                replication_controllers=gone_controllers,
                deployments=gone_deployments,
                daemon_sets=gone_daemon_sets,
                stateful_sets=gone_stateful_sets,
                jobs=gone_jobs,
                pdbs=gone_pdbs,
                namespaces=tuple(name for _, name in gone_namespaces),
                volumes=gone_volumes,
                devices=gone_devices,
                capacity=gone_capacity,
            ),
        )

    def _open(self, kind: Kind[Any]) -> None:
        keep = self._trims.get(kind.plural)
        informer = self._caches.of(kind) if keep is None else self._caches.of(kind, keep=keep)
        self._sources[kind.plural] = _Source(informer, informer.feed())

    async def _replication_controllers(
        self, *, needed: bool
    ) -> tuple[tuple[ReplicationController, ...] | None, tuple[Key, ...]]:
        """Return what changed in ReplicationControllers; they are read from the first pod or buffer on that has one."""
        name = REPLICATION_CONTROLLERS.plural
        if name not in self._sources:
            if not needed:
                return None, ()
            self._open(REPLICATION_CONTROLLERS)
            await self._sources[name].informer.answered()
        if not self._sources[name].informer.has_synced:
            return None, ()
        known = self._known.replication_controllers
        changed, gone = self._take(name, known or {}, slim_replication_controller)
        return (changed if changed or known is None else None), gone

    async def _begin_with_volumes(self) -> None:
        """Read volume objects from now on, as there is a pod with a claim; the server may refuse them."""
        self._reads_volumes = True
        for kind in VOLUME_KINDS:
            self._open(kind)
        for name in KIND_OF:
            await self._sources[name].informer.answered()

    async def _begins_with_devices(self, pods: Sequence[Pod]) -> bool:
        """Read devices from the first pod on that may ask for any, where the API has them."""
        if self._reads_devices or not self._known.settings.enable_dynamic_resource_allocation:
            return False
        # Most pods with extended resources have nothing to do with device classes: they ask once.
        asking = any(map(asks_for_claims, pods)) or (
            not self._looked_for_devices and any(map(asks_for_extended, pods))
        )
        if not asking:
            return False
        self._looked_for_devices = True
        served = await self._cluster.kinds()
        if not {kind.resource for kind in DEVICE_KINDS} <= {
            one.resource for one in served if one.version == "v1"
        }:
            return False
        self._reads_devices = True
        for kind in DEVICE_KINDS:
            self._open(kind)
        for name in DEVICE_KIND_OF:
            await self._sources[name].informer.answered()
        return True

    def _unread(self) -> tuple[str, ...]:
        names = [*(KIND_OF if self._reads_volumes else ()), *(DEVICE_KIND_OF if self._reads_devices else ())]
        unread = [name for name in names if not self._sources[name].informer.has_synced]
        return (*unread, *self.capacity.unread())

    def _volumes(self) -> tuple[VolumeChanges, tuple[KnownKey, ...]]:
        if not self._reads_volumes:
            return VolumeChanges(), ()
        changed: dict[str, tuple[Any, ...]] = {}
        gone: list[KnownKey] = []
        for name, kind in KIND_OF.items():
            held = self._known.volumes.of(kind)
            changed[name], left = self._take(name, held, partial(slim_volume_object, kind))
            gone += [(name, *key) for key in left]
        return VolumeChanges.from_kinds(changed), tuple(gone)

    def _devices(self) -> tuple[DeviceChanges, tuple[KnownKey, ...]]:
        if not self._reads_devices:
            return DeviceChanges(), ()
        changed: dict[str, tuple[Any, ...]] = {}
        gone: list[KnownKey] = []
        for name, kind in DEVICE_KIND_OF.items():
            held = self._known.devices.of(kind)
            changed[name], left = self._take(name, held, partial(slim_device_object, kind))
            gone += [(name, *key) for key in left]
        return DeviceChanges.from_kinds(changed), tuple(gone)

    def _take(
        self, name: str, known: Mapping[Key, T] | ByKey[T], slim: Callable[[Any], T]
    ) -> tuple[tuple[T, ...], tuple[Key, ...]]:
        """Return what changed in what is read, in order of key, and the keys that are gone."""
        _, changed, gone = self._changed(name, known, slim)
        return changed, gone

    def _changed(
        self, name: str, known: Mapping[Key, T] | ByKey[T], slim: Callable[[Any], T]
    ) -> tuple[tuple[Key, ...], tuple[T, ...], tuple[Key, ...]]:
        """Return what ``_take`` gives, and first the keys of what changed."""
        source = self._sources[name]
        drained = source.feed.drain()
        if not drained:
            return (), (), ()
        # Of a kind that nobody reads whole the cache has them slim.
        slimmed = source.informer.keep is not None
        keys: list[Key] = []
        changed: list[T] = []
        gone: list[Key] = []
        for key, item in sorted(drained.items(), key=_first):
            if item is None:
                if key in known:
                    gone.append(key)
                continue
            small = item if slimmed else slim(item)
            if known.get(key) != small:
                keys.append(key)
                changed.append(small)
        return tuple(keys), tuple(changed), tuple(gone)

    async def _pods_on(self, node_name: str) -> tuple[Pod, ...]:
        listing = await self._cluster.list(PODS, fields=f"spec.nodeName={node_name}")
        return tuple(self._pods.slim(pod) for pod in listing.items if not is_finished(pod))

    def _holds(self) -> tuple[str, ...]:
        """Say why nothing may be removed on what is cached now."""
        now, settings = self._clock.now(), self._known.settings
        found: list[str] = []
        for informer in (self.pods, self.nodes):
            found += holds_of(informer, now, settings, may_be_old=self._remote or informer.failures > 0)
        return tuple(found)


def _has_replication_controller(pod: Pod) -> bool:
    owner = controller_of(pod.metadata)
    return owner is not None and owner.kind == REPLICATION_CONTROLLERS.kind


def _first(item: tuple[Key, object]) -> Key:
    return item[0]


def _finished(pods: Iterable[Pod], known: Mapping[Key, Pod]) -> tuple[Key, ...]:
    keys = ((pod.metadata.namespace, pod.metadata.name) for pod in pods if is_finished(pod))
    return tuple(key for key in keys if key in known)
