"""Upstream's actuator: it taints nodes at once; beside the loop it evicts their pods and has the cloud delete them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

from tests.nodes.reference import events
from tests.nodes.reference.blocking_errors import blocking_error
from tests.nodes.reference.candidates import Candidates
from tests.nodes.reference.deletions import Deletions
from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.drain_rules import pods_to_move
from tests.nodes.reference.eviction import evict
from tests.nodes.reference.group_options import is_atomic
from tests.nodes.reference.node_marks import TO_BE_DELETED, clean_taint, put_taint
from tests.nodes.reference.parallelism import Batch, crop
from tests.nodes.reference.pod_kinds import has_ended, is_daemon, is_expendable, is_mirror
from tests.nodes.reference.processes import Process, Processes
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.utilization import Utilization, utilization
from tests.nodes.reference.world import CloudRefusal, Group, Json, World

from kubetide.units.time import Duration, Instant, after, seconds

DELAY_DELETION = "delay-deletion.cluster-autoscaler.kubernetes.io/"


@dataclass
class ScaledDown:
    """A node whose deletion started. The pods are those of the loop's snapshot."""

    node: Json
    group: str
    drain: bool
    pods: list[Json]
    utilization: Utilization


@dataclass
class Started:
    result: str
    nodes: list[ScaledDown] = field(default_factory=list)


@dataclass
class Actuator:
    """What lives from loop to loop. `deleted` and `evicted` are the record of one step."""

    candidates: Candidates
    deletions: Deletions = field(default_factory=Deletions)
    processes: Processes = field(default_factory=Processes)
    queues: dict[str, list[Json]] = field(default_factory=dict)
    """By group: nodes without pods that wait for the rest of their atomic group."""
    batches: dict[str, list[Json]] = field(default_factory=dict)
    """By group: nodes that wait for `--node-deletion-batcher-interval`, to be deleted by one call."""
    as_drained: dict[str, bool] = field(default_factory=dict)
    """Nodes that the cloud is asked to delete, and whether upstream's events call them drained.

    Of an atomic group, all go by the node that was the last to be ready.
    """
    failed_groups: set[str] = field(default_factory=set)
    deleted: list[Json] = field(default_factory=list)
    evicted: list[Json] = field(default_factory=list)

    def begin_step(self) -> None:
        self.deleted.clear()
        self.evicted.clear()

    def start_deletion(
        self, world: World, snapshot: Snapshot, empty: list[Json], drain: list[Json], now: Instant
    ) -> Started:
        """Taint and cordon as many of the nodes as the flags allow, and start what does the rest."""
        self.failed_groups = set()
        batches = crop(world, snapshot, self.deletions, empty, drain)
        if not any(batches):
            return Started("ScaleDownNoNodeDeleted")
        started = Started("ScaleDownNodeDeleteStarted")
        cordon = world.flags.on("cordon-node-before-terminating")
        time = after(now, world.flags.duration("node-delete-delay-after-taint"))
        for one, with_drain in zip(batches, (False, True), strict=True):
            for batch in one:
                for node in batch.nodes:
                    put_taint(world, node, TO_BE_DELETED, "NoSchedule", now, cordon=cordon)
                    events.on_node(world, node, "ScaleDown", "marked the node as toBeDeleted/unschedulable")
            for batch in one:
                for node in batch.nodes:
                    reported = _report(world, snapshot, node, batch.group, with_drain, now)
                    started.nodes += reported
                    _note_start(world, node, reported, drain=with_drain)
                    self.deletions.start(batch.group.id, node["metadata"]["name"], drain=with_drain)
            for batch in one:
                self.processes.start(self._delete_batch(world, batch, with_drain), time)
        return started

    # ── beside the loop ──

    def _delete_batch(self, world: World, batch: Batch, drain: bool) -> Process:
        """Look at the pods again and let each node without a reason to stay go its own way."""
        disruptions = Disruptions.of(world) if drain else Disruptions()
        size = batch.size or len(batch.nodes)
        for node in batch.nodes:
            name = node["metadata"]["name"]
            pods = _running_pods(world, name)
            moves = pods_to_move(world, pods, disruptions, world.now, check_owners=drain)
            error = ""
            if moves.blocking is not None:
                words = blocking_error(world, *moves.blocking)
                error = f"GetPodsToMove for {_quoted(name)} returned error: {words}"
            elif not drain and moves.pods:
                error = f"failed to delete empty node {_quoted(name)}, new pods scheduled"
            elif not drain and moves.on_completion:
                error = f"failed to delete empty node {_quoted(name)}, active on-completion pods present"
            if error:
                self._abort(world, node, batch.group, "NodeDeleteErrorInternal", error, drain=drain)
                continue
            self.processes.start(self._delete(world, node, pods, batch.group, size, drain), world.now)
        yield from ()

    def _delete(
        self, world: World, node: Json, pods: list[Json], group: Group, size: int, drain: bool
    ) -> Process:
        """Evict the pods, wait for those who asked for it, and hand the node on with the others of its group."""
        name = node["metadata"]["name"]
        error = yield from evict(world, name, pods, self.evicted, drain=drain)
        if error:
            self._abort(world, node, group, "NodeDeleteErrorFailedToEvictPods", error, drain=drain)
            return
        error = yield from _wait_for_release(world, node)
        if error:
            self._abort(world, node, group, _NOT_DELETED, error, drain=drain)
            return
        queue = self.queues.setdefault(group.id, [])
        queue.append(node)
        if is_atomic(group):
            if group.id in self.failed_groups:
                self._end_badly(world, node, group, _NOT_DELETED, _OTHERS_FAILED, drain=drain)
                queue.clear()
            if len(queue) < size:
                return
        ready = self.queues.pop(group.id)
        self.as_drained.update({one["metadata"]["name"]: drain for one in ready})
        self._collect(world, group, ready)

    def _collect(self, world: World, group: Group, nodes: list[Json]) -> None:
        """Call the cloud at once, or after the interval with all nodes of the group that come in it."""
        interval = world.flags.duration("node-deletion-batcher-interval")
        if interval == 0:
            self._call_cloud(world, nodes)
            return
        if group.id not in self.batches:
            self.processes.start(self._call_later(world, group), after(world.now, interval))
        self.batches.setdefault(group.id, []).extend(nodes)

    def _call_later(self, world: World, group: Group) -> Process:
        self._call_cloud(world, self.batches.pop(group.id))
        yield from ()

    def _call_cloud(self, world: World, nodes: list[Json]) -> None:
        group = world.group_of_node(nodes[0])
        assert group is not None
        refusal = ""
        try:
            world.delete_machines(group.id, [one["spec"]["providerID"] for one in nodes])
        except CloudRefusal as error:
            refusal = str(error)
            self.candidates.failures[group.id] = world.now
        for node in nodes:
            name = node["metadata"]["name"]
            drain = self.as_drained.pop(name)
            kind = "drain" if name in self.deletions.drained else "empty"
            entry = {"node": name, "group": group.id, "kind": kind}
            self.deleted.append({**entry, "error": refusal} if refusal else entry)
            if refusal:
                error_text = f"failed to delete nodes from group {group.id}: {refusal}"
                self._end_badly(world, node, group, _NOT_DELETED, error_text, drain=drain)
                continue
            _note_end(world, node, drain=drain)
            self.candidates.scale_downs[group.id] = world.now
            self.deletions.end(group.id, name, "NodeDeleteOk")

    def _abort(self, world: World, node: Json, group: Group, result: str, error: str, *, drain: bool) -> None:
        """Give up a node, and with it those of its group that wait for the others."""
        self.failed_groups.add(group.id)
        self._end_badly(world, node, group, result, error, drain=drain)
        for other in self.queues.pop(group.id, []):
            self._end_badly(world, other, group, _NOT_DELETED, _OTHERS_FAILED, drain=drain)

    def _end_badly(
        self, world: World, node: Json, group: Group, result: str, error: str, *, drain: bool
    ) -> None:
        tried = "drain and delete node" if drain else "delete empty node"
        events.on_node(world, node, "ScaleDownFailed", f"failed to {tried}: {error}", warning=True)
        # On purpose a cordon that somebody else had put there stays; upstream takes it off.
        cordoned = bool(node["spec"].get("unschedulable"))
        uncordon = world.flags.on("cordon-node-before-terminating") and not cordoned
        clean_taint(world, node, TO_BE_DELETED, uncordon=uncordon)
        self.deletions.end(group.id, node["metadata"]["name"], result, error)


_NOT_DELETED = "NodeDeleteErrorFailedToDelete"
_OTHERS_FAILED = "couldn't scale down other nodes in this node group"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _note_start(world: World, node: Json, reported: list[ScaledDown], *, drain: bool) -> None:
    name = node["metadata"]["name"]
    if not drain:
        events.on_status(world, "ScaleDownEmpty", f"Scale-down: removing empty node {_quoted(name)}")
        return
    for one in reported:
        pods = ",".join(pod["metadata"]["name"] for pod in one.pods)
        words = f"utilization: {one.utilization.go_text()}, pods to reschedule: {pods}"
        events.on_status(world, "ScaleDown", f"Scale-down: removing node {name}, {words}")


def _note_end(world: World, node: Json, *, drain: bool) -> None:
    name = node["metadata"]["name"]
    events.on_node(world, node, "ScaleDown", "nodes removed by cluster autoscaler")
    if drain:
        events.on_status(world, "ScaleDown", f"Scale-down: node {name} removed with drain")
    else:
        events.on_status(world, "ScaleDownEmpty", f"Scale-down: empty node {name} removed")


def _report(
    world: World, snapshot: Snapshot, node: Json, group: Group, drain: bool, now: int
) -> list[ScaledDown]:
    place = snapshot.get(node["metadata"]["name"])
    found = utilization(world, place, group, now) if place is not None else None
    if place is None or found is None:
        return []
    pods = [one for one in place.pods if not is_mirror(one) and not is_daemon(one)]
    return [ScaledDown(node, group.id, drain, pods if drain else [], found)]


def _wait_for_release(world: World, node: Json) -> Generator[Duration, None, str]:
    """Wait until nobody asks any more to delay the deletion, or for too long; return an error if the Node is gone.

    A node that did not ask when the loop began is not waited for.
    """
    longest = world.flags.duration("node-deletion-delay-timeout")
    if longest == 0 or not _asks_for_delay(node):
        return ""
    name, until = node["metadata"]["name"], world.now + longest
    while world.now < until:
        yield Duration(min(seconds(5), until - world.now))
        if name not in world.nodes:
            return f"failed to get node {name}: node {_quoted(name)} not found"
        if not _asks_for_delay(world.nodes[name]):
            break
    return ""


def _asks_for_delay(node: Json) -> bool:
    return any(one.startswith(DELAY_DELETION) for one in node["metadata"].get("annotations") or {})


def _running_pods(world: World, node: str) -> list[Json]:
    """Return the pods that upstream sees on a node: those that have not ended and are not expendable."""
    cutoff = world.flags.whole("expendable-pods-priority-cutoff")
    return [one for one in world.pods_on(node) if not has_ended(one) and not is_expendable(one, cutoff)]
