"""Upstream's actuator: it taints nodes at once; a little later it evicts their pods and has the cloud delete them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.candidates import Candidates
from tests.nodes.reference.deletions import Deletions
from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.drain_rules import pods_to_move
from tests.nodes.reference.node_marks import TO_BE_DELETED, clean_taint, put_taint
from tests.nodes.reference.parallelism import Batch, crop
from tests.nodes.reference.pod_kinds import is_daemon, is_expendable, is_mirror, note
from tests.nodes.reference.snapshot import Snapshot, pod_key
from tests.nodes.reference.utilization import Utilization, utilization
from tests.nodes.reference.world import CloudRefusal, Group, Json, World

EVICT_DAEMON = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"


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
class Work:
    """A batch that waits for its time."""

    batch: Batch
    drain: bool
    time: int


@dataclass
class Actuator:
    """What lives from loop to loop. `deleted` and `evicted` are the record of one step."""

    deletions: Deletions = field(default_factory=Deletions)
    work: list[Work] = field(default_factory=list)
    queues: dict[str, list[Json]] = field(default_factory=dict)
    failed_groups: set[str] = field(default_factory=set)
    deleted: list[Json] = field(default_factory=list)
    evicted: list[Json] = field(default_factory=list)

    def begin_step(self) -> None:
        self.deleted, self.evicted = [], []

    def start_deletion(
        self, world: World, snapshot: Snapshot, empty: list[Json], drain: list[Json], now: int
    ) -> Started:
        """Taint and cordon as many of the nodes as the flags allow. `finish` does the rest."""
        self.failed_groups = set()
        batches = crop(world, snapshot, self.deletions, empty, drain)
        if not any(batches):
            return Started("ScaleDownNoNodeDeleted")
        started = Started("ScaleDownNodeDeleteStarted")
        cordon = world.flags.on("cordon-node-before-terminating")
        time = now + world.flags.duration("node-delete-delay-after-taint")
        for one, with_drain in zip(batches, (False, True), strict=True):
            for batch in one:
                for node in batch.nodes:
                    put_taint(world, node, TO_BE_DELETED, "NoSchedule", now, cordon=cordon)
            for batch in one:
                for node in batch.nodes:
                    started.nodes += _report(world, snapshot, node, batch.group, with_drain, now)
                    self.deletions.start(batch.group.id, node["metadata"]["name"], drain=with_drain)
                self.work.append(Work(batch, with_drain, time))
        return started

    def finish(self, world: World, candidates: Candidates) -> None:
        """Let time run until all that was started has ended."""
        work, self.work = self.work, []
        for one in work:
            disruptions = Disruptions.of(world) if one.drain else Disruptions()
            for node in one.batch.nodes:
                self._delete(world, node, one, disruptions, candidates)

    def _delete(
        self, world: World, node: Json, work: Work, disruptions: Disruptions, candidates: Candidates
    ) -> None:
        """Look at the pods again, evict them, and call the cloud once the batch of an atomic group is complete."""
        group, name = work.batch.group, node["metadata"]["name"]
        pods = _running_pods(world, name)
        moves = pods_to_move(world, pods, disruptions, work.time, check_owners=work.drain)
        error = ""
        if moves.blocking is not None:
            error = f"GetPodsToMove for {_quoted(name)} returned error"
        elif not work.drain and moves.pods:
            error = f"failed to delete empty node {_quoted(name)}, new pods scheduled"
        elif not work.drain and moves.on_completion:
            error = f"failed to delete empty node {_quoted(name)}, active on-completion pods present"
        if error:
            self._abort(world, node, group, error)
            return
        self._evict(world, pods, drain=work.drain)
        queue = self.queues.setdefault(group.id, [])
        queue.append(node)
        if work.batch.size:
            if group.id in self.failed_groups:
                self._end_badly(world, node, group, "NodeDeleteErrorFailedToDelete", _OTHERS_FAILED)
                queue.clear()
            if len(queue) < work.batch.size:
                return
        self._call_cloud(world, list(queue), work.time, candidates)
        queue.clear()

    def _evict(self, world: World, pods: list[Json], *, drain: bool) -> None:
        side = "occupied" if drain else "empty"
        by_default = world.flags.on(f"daemonset-eviction-for-{side}-nodes")
        longest = world.flags.whole("max-graceful-termination-sec")
        for pod in pods:
            if is_mirror(pod):
                continue
            if is_daemon(pod):
                own = note(pod, EVICT_DAEMON)
                if not (by_default if own is None else own == "true"):
                    continue
            elif not drain:
                continue
            grace = pod["spec"].get("terminationGracePeriodSeconds")
            grace = 30 if grace is None else grace
            if 0 < longest < grace:
                grace = longest
            self.evicted.append(
                {
                    "pod": "/".join(pod_key(pod)),
                    "node": pod["spec"]["nodeName"],
                    "gracePeriodSeconds": grace,
                }
            )
            world.pods.pop(pod_key(pod), None)

    def _call_cloud(self, world: World, nodes: list[Json], now: int, candidates: Candidates) -> None:
        group = world.group_of_node(nodes[0])
        assert group is not None
        refusal = ""
        try:
            world.delete_machines(group.id, [one["spec"]["providerID"] for one in nodes])
        except CloudRefusal as error:
            refusal = str(error)
            candidates.failures[group.id] = now
        for node in nodes:
            name = node["metadata"]["name"]
            kind = "drain" if name in self.deletions.drained else "empty"
            entry = {"node": name, "group": group.id, "kind": kind}
            self.deleted.append({**entry, "error": refusal} if refusal else entry)
            if refusal:
                error_text = f"failed to delete nodes from group {group.id}: {refusal}"
                self._end_badly(world, node, group, "NodeDeleteErrorFailedToDelete", error_text)
                continue
            candidates.scale_downs[group.id] = now
            self.deletions.end(group.id, name, "NodeDeleteOk")

    def _abort(self, world: World, node: Json, group: Group, error: str) -> None:
        """Give up a node, and with it those of its group that wait for the others."""
        self.failed_groups.add(group.id)
        self._end_badly(world, node, group, "NodeDeleteErrorInternal", error)
        for other in self.queues.pop(group.id, []):
            self._end_badly(world, other, group, "NodeDeleteErrorFailedToDelete", _OTHERS_FAILED)

    def _end_badly(self, world: World, node: Json, group: Group, result: str, error: str) -> None:
        # Upstream takes a cordon off that somebody else had put there.
        cordoned = bool(node["spec"].get("unschedulable"))
        uncordon = world.flags.on("cordon-node-before-terminating") and not cordoned
        clean_taint(world, node, TO_BE_DELETED, uncordon=uncordon)
        self.deletions.end(group.id, node["metadata"]["name"], result, error)


_OTHERS_FAILED = "couldn't scale down other nodes in this node group"


def _quoted(name: str) -> str:
    return f'"{name}"'


def _report(
    world: World, snapshot: Snapshot, node: Json, group: Group, drain: bool, now: int
) -> list[ScaledDown]:
    place = snapshot.get(node["metadata"]["name"])
    found = utilization(world, place, group, now) if place is not None else None
    if place is None or found is None:
        return []
    pods = [one for one in place.pods if not is_mirror(one) and not is_daemon(one)]
    return [ScaledDown(node, group.id, drain, pods if drain else [], found)]


def _running_pods(world: World, node: str) -> list[Json]:
    """Return the pods that upstream sees on a node: those that have not ended and are not expendable."""
    cutoff = world.flags.whole("expendable-pods-priority-cutoff")
    return [
        one
        for one in world.pods_on(node)
        if (one.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
        and not is_expendable(one, cutoff)
    ]
