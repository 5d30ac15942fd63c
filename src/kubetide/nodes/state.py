"""The node loop's state, the sum of all deltas: ``State.apply`` is the only way to change it from outside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from types import MappingProxyType

from msgspec.structs import replace

from kubetide.nodes.facts.capacity import KnownCapacity
from kubetide.nodes.facts.devices import KnownDevices
from kubetide.nodes.facts.node_devices import NodeDevices
from kubetide.nodes.facts.nodes import TO_BE_DELETED, Health, has_taint, health_of, readiness
from kubetide.nodes.facts.objects import drop_all, put_all
from kubetide.nodes.facts.pod_store import HeldPods
from kubetide.nodes.facts.priorities import PriorityMap
from kubetide.nodes.facts.volumes import KnownVolumes
from kubetide.nodes.memory import Memory
from kubetide.nodes.phases import NoPhases, Phases
from kubetide.nodes.records.delta import Delta, Gone, Step
from kubetide.nodes.registry.known_nodes import KnownNodes, still_known
from kubetide.nodes.registry.machines import Machines, machines_of
from kubetide.nodes.registry.view import ClusterView
from kubetide.nodes.scale_down.facts import Cache
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.amounts import take_over
from kubetide.nodes.templates.cached import KnownTemplates
from kubetide.nodes.templates.matrix import TemplateMatrix
from kubetide.nodes.templates.template import LookedAt
from kubetide.objects.batch import Job
from kubetide.objects.meta import Key, key_of
from kubetide.objects.minor_version import minor_of
from kubetide.objects.node import Namespace, Node
from kubetide.objects.pod import Pod, is_finished
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController
from kubetide.plan.board import Intent, Replacement, RequestsByController
from kubetide.ports.cloud import GroupCandidate, NodeGroup, instance_id
from kubetide.scheduling import ClusterFacts, Devices, Snapshot
from kubetide.scheduling.devices.templates import complete_pools
from kubetide.units.seeds import Draw, unit_interval
from kubetide.units.time import ZERO, Instant

__all__ = ["Delta", "Gone", "State", "Step"]


class State:
    """Everything the loop decides on. Readers must not change what they get.

    Attributes:
        snapshot: Nodes and the pods that are on them (or nominated to them), without expendable pods.
        version: Counts the changes of anything but ``holds``, ``step`` and ``memory``.
        view: What the update step of this tick saw of the groups; None before the first.
        memo: Whether findings of earlier ticks may be used again; off only to show that it changes nothing.
        looked_at: What the templates of groups were learned from; unread where ``memo`` is off.
        known_templates: Templates of earlier ticks; unread where ``memo`` is off.
        unlooked: Nodes that are new, have changed or may soon be well, from which nothing was learned yet.
        template_matrix: All templates side by side, as classes were last evaluated against them; unread where ``memo`` is off.
        quiet: The version at which there was no demand, fault or pending change, and until when that holds; None when there was one.
        tick: What the scale-up step found out for the later steps of the same tick; None outside.
        draw: Returns the number from 0 to 1 by which one of several equals is picked.
        elapsed: How long the tick has taken when this step began.
        nodes_version, owners_version: Change with nodes, groups or devices; with workloads or budgets.
        phases: Takes note of where the parts of a tick begin and end.
    """

    def __init__(self, settings: Settings | None = None, memory: Memory | None = None) -> None:
        self.settings = settings or Settings()
        self.memory = memory or Memory()
        self.step: Step = "update"
        self.nodes: dict[str, Node] = {}
        self.held_pods = HeldPods()
        self.pods = self.held_pods.by_key
        self.replica_sets: dict[Key, ReplicaSet] = {}
        self.replication_controllers: dict[Key, ReplicationController] | None = None
        """None where they were never read."""
        self.deployments: dict[Key, Deployment] = {}
        self.daemon_sets: dict[Key, DaemonSet] = {}
        self.stateful_sets: dict[Key, StatefulSet] = {}
        self.jobs: dict[Key, Job] = {}
        self.pdbs: dict[Key, PodDisruptionBudget] = {}
        self.namespaces: dict[str, Namespace] = {}
        self.volumes = KnownVolumes()
        self.devices = KnownDevices()
        self.capacity = KnownCapacity()
        self.groups: dict[str, NodeGroup] = {}
        self.candidates: tuple[GroupCandidate, ...] = ()
        self.intents: tuple[Intent, ...] = ()
        self.announced_new_pods: RequestsByController = {}
        self.replacements: tuple[Replacement, ...] = ()
        self.priority_map = PriorityMap()
        self.holds: tuple[str, ...] = ()
        self.draw: Draw = unit_interval
        self.elapsed = ZERO
        self.live_pods: Mapping[str, tuple[Pod, ...]] = MappingProxyType({})
        self.snapshot = Snapshot(ClusterFacts(minor=minor_of(self.settings.kubernetes_version)))
        self.version = self.nodes_version = self.owners_version = 0
        self.scale_down_cache = Cache()
        self.view: ClusterView | None = None
        self.tick: Tick | None = None
        self.memo = True
        self.phases: Phases = NoPhases()
        self.looked_at: dict[str, LookedAt] = {}
        self.known_templates = KnownTemplates()
        self._known_nodes = KnownNodes()
        self.unlooked: dict[str, None] = {}
        self.template_matrix: TemplateMatrix | None = None
        self.quiet: tuple[int, Instant] | None = None
        self._machines = Machines()
        self._health: dict[str, tuple[Node, Settings, Health]] = {}
        self._node_devices: tuple[Devices | None, NodeDevices] | None = None

    # -- reading -----------------------------------------------------------------------------

    def group_of(self, node_name: str) -> str | None:
        """Return the id of the node's group, also just after its instance is deleted; None if it has none.

        A node whose machine is gone by itself is in no group, as clouds answer upstream: nothing deletes a machine that
        there is not. Only what ``knows_machines`` calls ``groups`` or ``former``, as upstream's own test provider, remembers it.
        """
        node = self.nodes.get(node_name)
        if node is None:
            return None
        provider_id = instance_id(node)
        group = self._machines.group_of.get(provider_id)
        remembers = self.settings.knows_machines in {"former", "groups"}
        if group is None and (remembers or has_taint(node, TO_BE_DELETED)):
            group = self.memory.former_instances.get(provider_id)
        return group if group in self.groups else None

    def health(self, node_name: str) -> Health:
        """Return the health that the node object states. Raises KeyError for an unknown node."""
        node = self.nodes[node_name]
        if self.snapshot.facts.devices is not None and self.lacks_devices(node_name):
            return Health(readiness(node, self.settings) or "ResourceUnready", None)
        known = self._health.get(node_name)
        if known is not None and known[0] is node and known[1] is self.settings:
            return known[2]
        health = health_of(node, self.settings)
        self._health[node_name] = node, self.settings, health
        return health

    def node_devices(self) -> NodeDevices:
        """Return the node-local devices; valid while the snapshot's devices are unchanged."""
        devices = self.snapshot.facts.devices
        if self._node_devices is None or self._node_devices[0] is not devices:
            self._node_devices = devices, NodeDevices.of(self.snapshot)
        return self._node_devices[1]

    def lacks_devices(self, node_name: str) -> bool:
        """Return whether a driver has fewer complete pools here than on nodes of the group. Source: Cluster Autoscaler, RunOnce."""
        group = self.group_of(node_name)
        seen = None if group is None else self.memory.templates.get(group)
        template = None if group is None else self.groups[group].template
        expected = (template.slices if template is not None else None) or ()
        if seen is not None:
            # A driver that has gone while nodes stayed was taken away: nobody is expected to have its devices.
            at_work = self.node_devices().drivers
            expected = tuple(one for one in seen.slices if not seen.live or one.spec.driver in at_work)
        if not expected or self.nodes[node_name].spec.unschedulable:
            return False
        there = self.node_devices().pools(node_name)
        return any(there.get(driver, 0) < count for driver, count in complete_pools(expected).items())

    def has_instance(self, node_name: str) -> bool:
        """Return whether the cloud still has the node's machine, as far as it can say. Source: Cluster Autoscaler, HasInstance."""
        node, knows = self.nodes[node_name], self.settings.knows_machines
        is_listed = knows not in {"former", "unknown"} and self._machines.lists(instance_id(node))
        if knows == "groups":
            return is_listed
        if not is_listed:
            return not has_taint(node, TO_BE_DELETED)
        return knows != "existing" or not self.is_leaving(node_name)

    def is_leaving(self, node_name: str) -> bool:
        """Return whether the cloud is deleting the node's machine, which still exists."""
        return self.nodes[node_name].spec.provider_id in self._machines.deleting

    def lister_of(self, node_name: str) -> str | None:
        """Return the group that lists the machine of a node that belongs to none, and counts it; None where none does."""
        return self._machines.left_alone.get(instance_id(self.nodes[node_name]))

    def known_nodes(self, now: Instant | None = None) -> KnownNodes:
        """Return the cached facts about the present nodes and groups; ``now`` for facts that depend on the time."""
        usable = self.memo and self.snapshot.facts.devices is None
        version, settings = self.nodes_version, self.settings
        self._known_nodes = still_known(self._known_nodes, version, settings, now, usable=usable)
        return self._known_nodes

    def nodes_by_group(self) -> Mapping[str, list[str]]:
        """Return the names of each group's nodes, in name order; groups without nodes are included."""
        known = self.known_nodes()
        if known.by_group is not None:
            return known.by_group
        found: dict[str, list[str]] = {group: [] for group in self.groups}
        for name in sorted(self.nodes):
            group = self.group_of(name)
            if group is not None:
                found[group].append(name)
        known.by_group = found
        return found

    @property
    def pending(self) -> Mapping[Key, Pod]:
        """Unfinished pods without a node and without a nomination: a live view, in no order."""
        return MappingProxyType(self.held_pods.pending)

    # -- changing ----------------------------------------------------------------------------

    def apply(self, delta: Delta, *, full: bool = False, keys: Sequence[Key] = ()) -> None:
        """Apply gathered changes; ``full`` forgets everything before.

        ``keys``: those of ``delta.pods``, where these are in order of key, from a caller that holds them anyway.
        """
        if delta.step in {"update", "actuate"}:
            self.end_tick()
        elif not full and (delta.nodes or delta.pods or delta.gone.nodes or delta.gone.pods):
            raise ValueError(
                f"step {delta.step} goes on with the tick's snapshot: nodes and pods come with the next tick"
            )
        if full:
            self._start_anew(delta.settings, delta.memory)
        self.step, self.holds, self.elapsed = delta.step, delta.holds, delta.elapsed
        if delta.step == "update":
            self.memory.note_unwritten({f"{one.namespace}/{one.name}": one.error for one in delta.unwritten})
        self.live_pods = MappingProxyType(delta.live_pods or {})
        before = self.version
        self._apply_gone(delta.gone)
        if delta.namespaces or delta.gone.namespaces:
            self._put_namespaces(delta)
        begins = full or delta.step in {"update", "actuate"}
        if begins and self.volumes.apply(delta.volumes, delta.gone.volumes, delta.unread):
            self.snapshot.set_volumes(self.volumes.for_filters())
            self.version += 1
        if begins and self.devices.apply(delta.devices, delta.gone.devices, delta.unread):
            self.snapshot.set_devices(self.devices.for_filters())
            self._nodes_changed()
        if begins and self.capacity.apply(delta.capacity, delta.gone.capacity, delta.unread):
            self.version += 1
        for node in sorted(delta.nodes, key=lambda node: node.metadata.name):
            self._put_node(node)
        given = zip(keys or map(key_of, delta.pods), delta.pods, strict=True)
        pods = given if keys else iter(sorted(given, key=itemgetter(0)))
        if full:
            self._put_many(pods)
        else:
            for key, pod in pods:
                self.put_pod(pod, key)
        changed = [
            put_all(self.replica_sets, delta.replica_sets),
            self._put_replication_controllers(delta),
            put_all(self.deployments, delta.deployments),
            put_all(self.daemon_sets, delta.daemon_sets),
            put_all(self.stateful_sets, delta.stateful_sets),
            put_all(self.jobs, delta.jobs),
            put_all(self.pdbs, delta.pdbs),
        ]
        if delta.groups is not None:
            self.set_groups(delta.groups)
        if delta.candidates is not None:
            self.candidates, self.version = delta.candidates, self.version + 1
        if delta.learned is not None:
            take_over(self.memory, delta.learned)
            self.version += 1
        if delta.intents is not None:
            self.intents, self.version = delta.intents, self.version + 1
        if delta.new_pods is not None:
            self.announced_new_pods, self.version = delta.new_pods, self.version + 1
        if delta.replacements is not None:
            self.replacements, self.version = delta.replacements, self.version + 1
        if delta.priority_map is not None:
            self.priority_map = delta.priority_map
        self.owners_version += any(changed)
        if any(changed) and self.version == before:
            self.version += 1

    def forget(self) -> None:
        """Forget all but settings and memory, as at the start of a process: a full delta must follow."""
        self._start_anew(self.settings, self.memory)

    def _start_anew(self, settings: Settings | None, memory: Memory | None) -> None:
        phases, draw = self.phases, self.draw
        self.__init__(settings, memory)  # type: ignore[misc]  # the one way to start anew
        self.phases, self.draw = phases, draw

    def end_tick(self) -> None:
        """Remove the simulated placements of this tick from the snapshot."""
        if self.tick is not None:
            self.tick = None
            self.snapshot.revert()

    def set_groups(self, groups: Iterable[NodeGroup]) -> None:
        """Replace all node groups; instances that vanish while their node exists stay known by group."""
        before = self._machines
        self.groups = {group.id: group for group in sorted(groups, key=lambda group: group.id)}
        self._machines = machines_of(self.groups.values())
        names = {instance_id(node): name for name, node in self.nodes.items()}
        self.memory.former_instances = self._machines.vanished(self.memory.former_instances, before, names)
        for one in self._machines.joined(before, names):
            self.unlooked[names[one]] = None
        self._nodes_changed()

    def set_target(self, group_id: str, target: int) -> None:
        """Set a group's new target after a call to the cloud, ahead of the next refresh."""
        self.groups[group_id] = replace(self.groups[group_id], target_size=target)
        self._nodes_changed()

    def drop_instances(self, group_id: str, provider_ids: Iterable[str]) -> None:
        """Remove machines that the cloud deleted, and lower the target by their number."""
        group = self.groups[group_id]
        gone = dict.fromkeys(provider_ids)
        left = tuple(one for one in group.instances or () if one.provider_id not in gone)
        lost = len(group.instances or ()) - len(left)
        changed = replace(group, instances=left, target_size=group.target_size - lost)
        self.set_groups({**self.groups, group_id: changed}.values())

    def _apply_gone(self, gone: Gone) -> None:
        for key in sorted(gone.pods):
            self._drop_pod(key)
            self.snapshot.remove_pod(key)
        for name in sorted(gone.nodes):
            self._health.pop(name, None)
            if self.nodes.pop(name, None) is not None:
                self.snapshot.remove_node(name)
                self._nodes_changed()
        dropped = (
            drop_all(self.replica_sets, gone.replica_sets),
            drop_all(self.deployments, gone.deployments),
            drop_all(self.daemon_sets, gone.daemon_sets),
            drop_all(self.stateful_sets, gone.stateful_sets),
            drop_all(self.jobs, gone.jobs),
            drop_all(self.pdbs, gone.pdbs),
        )
        self.version += sum(dropped)
        self.owners_version += sum(dropped)

    def _put_replication_controllers(self, delta: Delta) -> bool:
        changed, gone = delta.replication_controllers, delta.gone.replication_controllers
        if changed is None and not gone:
            return False
        known = dict(self.replication_controllers or {})
        for key in gone:
            known.pop(key, None)
        put_all(known, changed or ())
        self.replication_controllers = known
        return True

    def _put_namespaces(self, delta: Delta) -> None:
        for name in delta.gone.namespaces:
            self.namespaces.pop(name, None)
        self.namespaces.update((one.metadata.name, one) for one in delta.namespaces)
        labels = {name: one.metadata.labels or {} for name, one in sorted(self.namespaces.items())}
        self.snapshot.set_facts(replace(self.snapshot.facts, namespaces=labels))
        self.version += 1

    def _nodes_changed(self) -> None:
        self.version += 1
        self.nodes_version += 1

    def _put_node(self, node: Node) -> None:
        self.nodes[node.metadata.name] = node
        self.unlooked[node.metadata.name] = None
        self.snapshot.set_node(node)
        self._nodes_changed()

    def put_pod(self, pod: Pod, key: Key | None = None) -> None:
        """Add or replace a pod; a finished one is removed."""
        key = key or key_of(pod)
        if node_name := self._take_pod(key, pod):
            self.snapshot.add_pod(pod, node_name, key=key)
        else:
            # It may have been nominated to a node before.
            self.snapshot.remove_pod(key)

    def _put_many(self, pods: Iterator[tuple[Key, Pod]]) -> None:
        # Some at a time: a list of all of them is large itself.
        while some := list(islice(pods, 10_000)):
            taken = [(key, pod, self._take_pod(key, pod)) for key, pod in some]
            self.snapshot.add_pods([one for one in taken if one[2] and self.pods.get(one[0]) is one[1]])

    def _take_pod(self, key: Key, pod: Pod) -> str:
        """Take a pod over, and return the node of the snapshot that it is to be put on; empty for none."""
        if is_finished(pod):
            self._drop_pod(key)
            return ""
        self.held_pods.put(key, pod)
        self.version += 1
        expendable = is_expendable(pod, self.settings.expendable_pods_priority_cutoff)
        return "" if expendable else pod.spec.node_name or pod.status.nominated_node_name

    def _drop_pod(self, key: Key) -> None:
        if pod := self.held_pods.drop(key):
            self.version += 1
            self.memory.consolidation.add_gone(pod, self.settings)
