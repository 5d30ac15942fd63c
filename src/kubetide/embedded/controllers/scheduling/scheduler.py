"""The embedded scheduler: binds pending pods to nodes, or says why it cannot."""

from __future__ import annotations

import logging
from typing import Any

from msgspec.structs import replace

from kubetide.acting import EventWriter, UnreadObjects
from kubetide.embedded.controllers.scheduling.claim_binding import NO_VOLUMES, ClaimBinder, Held
from kubetide.embedded.controllers.scheduling.device_binding import DeviceBinder
from kubetide.embedded.controllers.scheduling.device_cache import DeviceCache
from kubetide.embedded.controllers.scheduling.device_changes import DeviceChanges
from kubetide.embedded.controllers.scheduling.failure_handler import FailureHandler
from kubetide.embedded.controllers.scheduling.nominations import Nominations
from kubetide.embedded.controllers.scheduling.pod_changes import (
    NAME,
    asks_other,
    asks_the_same,
    counts_the_same,
    is_ours,
)
from kubetide.embedded.controllers.scheduling.pod_chooser import PodChooser
from kubetide.embedded.controllers.scheduling.scheduling_queue import SchedulingQueue, Waiting
from kubetide.embedded.controllers.scheduling.volume_cache import VolumeCache
from kubetide.embedded.controllers.scheduling.why_nowhere import Refused, chosen, why_nowhere
from kubetide.embedded.controllers.workloads.owned_pods import follow
from kubetide.embedded.wake import Wake
from kubetide.objects.kinds import PODS, Kind
from kubetide.objects.meta import Key
from kubetide.objects.minor_version import OLDEST
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.scheduling import PodClass, classify_unbound, facts_of_scheduler
from kubetide.scheduling.devices.allocation import PlannedClaim
from kubetide.scheduling.scoring import ScoredSnapshot
from kubetide.scheduling.snapshot.unread import unread_amounts
from kubetide.units.recent import Recent
from kubetide.watching import Informer

_LOG = logging.getLogger(__name__)
_MOST_REFUSED = 1024


class Scheduler:
    """Schedules pods one at a time, by priority and then arrival, on what it knows of the nodes.

    A pod that is bound counts on its node at once, before the cluster confirms it. One that fits
    nowhere gets the condition and the event that kube-scheduler writes, and is tried again when a
    node comes or changes or a pod goes so that a pod of its kind would fit, or after 5 minutes.

    Args:
        budgets: What preemption breaks only where nothing else helps.
        volumes, devices: Claims and volumes, and claims for devices; without them pods are placed as if they had none.
        chooser: Chooses among nodes; by default with the default profile, without owners of pods.
        writes_events: Whether an event is written for each bound pod: where people read them, as it doubles the writes.
        minor: The minor version of Kubernetes whose scheduler this one follows.
    """

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        pods: Informer[Pod],
        nodes: Informer[Node],
        namespaces: Informer[Namespace] | None = None,
        budgets: Informer[PodDisruptionBudget] | None = None,
        volumes: VolumeCache | None = None,
        devices: DeviceCache | None = None,
        chooser: PodChooser | None = None,
        writes_events: bool = False,
        minor: int = OLDEST,
    ) -> None:
        self._writes_events = writes_events
        self._cluster = cluster
        self._clock = clock
        self._pods = pods
        self._nodes = nodes
        self._namespaces = namespaces
        self._volumes = volumes
        self._claims = None if volumes is None else ClaimBinder(cluster, volumes)
        self._volumes_changed = False
        self._devices = devices
        self._device_claims = None if devices is None else DeviceBinder(cluster, devices)
        self._devices_changed = False
        self._device_changes = DeviceChanges()
        self._events = EventWriter(cluster, clock, NAME)
        self._unread = UnreadObjects(self._events)
        self._snapshot = ScoredSnapshot(facts_of_scheduler(minor))
        self._nominations = Nominations(self._snapshot)
        self._failure_handler = FailureHandler(
            cluster, clock, self._events, self._snapshot, self._nominations, pods, budgets
        )
        self._chooser = chooser or PodChooser()
        self._queue = SchedulingQueue()
        self._wake = Wake()
        self._refused: Recent[PodClass, Refused] = Recent(_MOST_REFUSED)  # by class, its last one
        self.errors = 0

    async def run(self) -> None:
        """Work until cancelled. The informers are run by whoever made them."""
        if self._namespaces is not None:
            follow(self._namespaces, self._namespace_changed)
            await self._namespaces.synced()
        if self._volumes is not None:
            self._volumes.follow(self._volume_changed)
        if self._devices is not None:
            self._devices.follow(self._device_changed)
        follow(self._nodes, self._node_changed)
        follow(self._pods, self._pod_changed)
        await self._nodes.synced()
        await self._pods.synced()
        while True:
            if self._volumes_changed:
                await self._take_over_volumes()
            if self._devices_changed:
                self._take_over_devices()
            await self._unread.tell()
            entry = self._queue.pop(self._clock.now())
            if entry is None:
                await self._wait()
                continue
            try:
                await self._schedule(entry)
            except Exception as error:  # noqa: BLE001  # the rim of a loop: it must survive one bad pod
                self.errors += 1
                if isinstance(error, ApiError):
                    _LOG.warning("scheduling of pod %s failed, will be tried again: %s", entry.key, error)
                else:
                    _LOG.exception("scheduling of pod %s failed, will be tried again", entry.key)
                self._queue.retry(entry, self._clock.now())

    async def _wait(self) -> None:
        if self._volumes_changed or self._devices_changed:
            return
        dues = [self._queue.next_due(), None if self._claims is None else self._claims.next_due()]
        due = min((one for one in dues if one is not None), default=None)
        await self._wake.wait(None if due is None else max(due - self._clock.now(), 0) / 1e9)
        self._wake.clear()
        if self._claims is not None:
            for held in self._claims.overdue(self._clock.now()):
                await self._give_up(held)

    # ── what happened ──

    def _volume_changed(self, _kind: Kind[Any], _key: Key, _old: Any, _new: Any) -> None:
        self._volumes_changed = True
        self._wake.set()

    def _device_changed(self, kind: Kind[Any], key: Key, old: Any, new: Any) -> None:
        self._devices_changed = True
        self._device_changes.note(kind, key, old, new)
        self._wake.set()

    def _take_over_devices(self) -> None:
        """Evaluate pods with claims for devices by what is known of these now."""
        assert self._devices is not None
        self._devices_changed = False
        self._snapshot.set_devices(self._devices.objects.devices())
        self._unread.note_devices(self._snapshot.devices)
        for pod_class in self._device_changes.taken(self._queue.unschedulable_classes()):
            self._wake_class(pod_class)

    async def _take_over_volumes(self) -> None:
        """Evaluate pods with claims by what is known of volumes now, and binds those that waited for theirs."""
        assert self._volumes is not None
        assert self._claims is not None
        self._volumes_changed = False
        self._snapshot.set_volumes(self._volumes.objects.volumes())
        for held in self._claims.ready():
            self._claims.drop(held.entry.key)
            try:
                await self._bind(held.entry, held.pod, held.node)
            except ApiError as error:
                self.errors += 1
                _LOG.warning("binding of pod %s failed, will be tried again: %s", held.entry.key, error)
                self._queue.retry(held.entry, self._clock.now())
        for pod_class in self._queue.unschedulable_classes():
            if pod_class.claims:
                self._wake_if_claims_help(pod_class)

    def _wake_if_claims_help(self, pod_class: PodClass) -> None:
        """Wake the class when it fits now, or when other things are wrong with its claims than were reported."""
        snapshot, known = self._snapshot, self._refused.get(pod_class)
        if snapshot.refused_everywhere(pod_class) is None:
            self._wake_if_it_fits(pod_class)
        elif known is not None and known.message != why_nowhere(snapshot, pod_class):
            self._wake_class(pod_class)

    async def _give_up(self, held: Held) -> None:
        """Take a pod off the node that it was to have: its claims got no volumes."""
        assert self._claims is not None
        self._claims.drop(held.entry.key)
        self._take_off(held.entry.key)
        self._queue.retry(held.entry, self._clock.now())
        if (pod := self._pods.objects.get(held.entry.key)) is not None:
            await self._failure_handler.note_failed_binding(pod, NO_VOLUMES)

    def _namespace_changed(self, key: Key, _old: Namespace | None, new: Namespace | None) -> None:
        labels = dict(self._snapshot.facts.namespaces)
        labels.pop(key[1], None)
        if new is not None:
            labels[key[1]] = new.metadata.labels or {}
        self._snapshot.set_facts(replace(self._snapshot.facts, namespaces=labels))
        self._others_may_fit()

    def _node_changed(self, key: Key, _old: Node | None, new: Node | None) -> None:
        if new is None:
            for nominated in self._nominations.to(key[1]):
                self._nominations.drop(nominated)
            self._snapshot.remove_node(key[1])
            self._others_may_fit()
            return
        self._unread.note(*unread_amounts(new))
        before = self._snapshot.version
        self._snapshot.set_node(new)
        if self._snapshot.version != before:
            self._may_help(key[1])

    def _pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if new is None or is_finished(new):
            self._forget(key)
            return
        if old is not None and old.metadata.uid != new.metadata.uid:
            self._forget(key)
            old = None
        if new.spec.node_name:
            self._queue.remove(key)
            self._nominations.drop(key)
            if old is None or not counts_the_same(old, new):
                self._failure_handler.note(key, new)
                self._put_on(key, new, wakes=old is None or not asks_the_same(old, new))
            return
        if key not in self._nominations and self._snapshot.node_of(key) is not None:
            return  # its binding is on the way
        if is_ours(new) and (given_up := self._nominations.note(key, new)):
            self._may_help(given_up)
        if not is_ours(new):
            self._queue.remove(key)
            return
        if old is None or key not in self._queue or asks_other(old, new):
            self._queue.add(key, new, classify_unbound(new), self._clock.now())
            self._wake.set()

    def _forget(self, key: Key) -> None:
        self._queue.remove(key)
        self._failure_handler.forget(key)
        if given_up := self._nominations.drop(key):
            self._may_help(given_up)
        if self._claims is not None:
            self._claims.drop(key)
        self._take_off(key)

    def _put_on(self, key: Key, pod: Pod, *, wakes: bool) -> None:
        left = self._snapshot.node_of(key)
        pod_class = classify_unbound(pod)
        if not self._snapshot.add_pod(pod, pod.spec.node_name, pod_class) or not wakes:
            return  # its binding has come out as assumed, or it has begun to stop
        self._others_may_fit(pod_class)
        if left is not None:
            # Moved (an assumption that came out otherwise) or shrunk by a resize.
            self._may_help(left)

    def _take_off(self, key: Key) -> None:
        node = self._snapshot.node_of(key)
        if node is not None:
            self._snapshot.remove_pod(key)
            # Its devices are not free before the controller of claims has taken them back.
            self._devices_changed |= self._snapshot.devices is not None
            self._may_help(node)

    def _may_help(self, node: str) -> None:
        """Wake the waiting pods that this node would take now, or any node because of what it has."""
        if node not in self._snapshot:
            return
        for nominated in self._nominations.to(node):
            # To the filters the node is full of the nominated pods themselves.
            if (entry := self._queue.get(nominated)) is not None:
                self._wake_class(entry.pod_class)
        for pod_class in self._queue.unschedulable_classes():
            if self._snapshot.has_inter_pod_rules(pod_class):
                self._wake_if_it_fits(pod_class)
            elif self._snapshot.fits(pod_class, node):
                self._wake_class(pod_class)

    def _others_may_fit(self, placed: PodClass | None = None) -> None:
        """Wake waiting pods that fit now because of where others are: a pod to stand near to, a fuller domain.

        Where only a pod was ``placed``, those that ask about such a pod.
        """
        queue, snapshot = self._queue, self._snapshot
        asking = (
            queue.unschedulable_classes() if placed is None else queue.asking.about(placed, snapshot.facts)
        )
        for pod_class in asking:
            if not snapshot.only_tightens(pod_class):
                self._wake_if_it_fits(pod_class)

    def _wake_if_it_fits(self, pod_class: PodClass) -> None:
        if self._snapshot.feasible(pod_class).any():
            self._wake_class(pod_class)

    def _wake_class(self, pod_class: PodClass) -> None:
        self._queue.wake(pod_class, self._clock.now())
        self._wake.set()

    # ── one pod ──

    async def _schedule(self, entry: Waiting) -> None:
        pod = self._pods.objects.get(entry.key)
        if pod is None or pod.metadata.uid != entry.uid:
            return
        pod_class = entry.pod_class
        if self._volumes is not None and pod_class.claims:
            await self._volumes.synced()
            if self._volumes_changed or self._snapshot.facts.volumes is None:
                await self._take_over_volumes()
        if self._devices is not None and pod_class.devices is not None:
            await self._look_at_devices(pod_class)
        known = None if entry.key in self._nominations else self._refused.get(pod_class)
        if known is not None and known.version == self._snapshot.version:
            await self._refuse(entry, pod, known)
            return
        node, found = self._choose(entry, pod)
        if node is None or found is not None:
            assert found is not None, "without a node there is a reason"
            self._refused.put(pod_class, found)
            await self._refuse(entry, pod, found)
            return
        if self._claims is not None and pod_class.claims and not self._claims.is_bound(pod_class):
            await self._hold(entry, pod, node)
            return
        await self._bind(entry, pod, node)

    def _choose(self, entry: Waiting, pod: Pod) -> tuple[str | None, Refused | None]:
        """Return the node for a pod, or why there is none: the one that it is nominated to if that takes it."""
        nominated = self._nominations.drop(entry.key)
        with self._nominations.ignoring_lower(entry.priority):
            if nominated and self._snapshot.fits(entry.pod_class, nominated):
                return nominated, None
            return chosen(self._chooser, pod, entry.pod_class, self._snapshot)

    async def _look_at_devices(self, pod_class: PodClass) -> None:
        """Wait for the caches where the pod names claims, or devices are in use already."""
        assert self._devices is not None
        if pod_class.devices is not None and (pod_class.devices.claims or self._devices.is_started):
            await self._devices.synced()
            if self._devices_changed or self._snapshot.devices is None:
                self._take_over_devices()

    async def _hold(self, entry: Waiting, pod: Pod, node: str) -> None:
        """Put a pod on a node, where it waits for volumes."""
        assert self._claims is not None
        self._snapshot.add_pod(pod, node)
        self._others_may_fit(entry.pod_class)
        self._volumes_changed = True
        try:
            await self._failure_handler.nominate(pod, node)
            await self._claims.hold(entry, pod, self._snapshot.node(node), self._clock.now())
        except ApiError:
            self._claims.drop(entry.key)
            self._take_off(entry.key)
            raise

    async def _bind(self, entry: Waiting, pod: Pod, node: str) -> None:
        namespace, name = entry.key
        claims: list[PlannedClaim] = []
        if self._device_claims is not None:
            on = self._snapshot.node(node)
            # One that waited there for volumes is given devices only now.
            self._snapshot.remove_pod(entry.key)
            claims = self._device_claims.plan(self._snapshot, entry.pod_class, entry.key, entry.uid, on)
        self._snapshot.add_pod(pod, node)
        self._others_may_fit(entry.pod_class)
        try:
            if self._device_claims is not None:
                await self._device_claims.write(pod, claims)
            await self._cluster.bind(namespace=namespace, pod=name, node=node, uid=pod.metadata.uid)
        except ApiError as error:
            known = self._pods.objects.get(entry.key)
            if known is None or not known.spec.node_name:
                self._take_off(entry.key)
            if isinstance(error, NotFound):
                self._queue.remove(entry.key)
                return
            raise
        self._queue.remove(entry.key)
        if self._writes_events:
            message = f"Successfully assigned {namespace}/{name} to {node}"
            await self._events.record(PODS, pod.metadata, "Normal", "Scheduled", message)

    async def _refuse(self, entry: Waiting, pod: Pod, why: Refused) -> None:
        self._queue.failed(entry, self._clock.now(), gated=why.gated)
        await self._failure_handler.handle(entry.key, pod, entry.pod_class, why)
