"""Upstream's main loop: one pass over cluster and cloud, and what it did, in the words of a recorded step."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from tests.nodes.reference import events, node_marks, soft_taints, up_events
from tests.nodes.reference.actuation import Actuator, ScaledDown
from tests.nodes.reference.candidates import Candidates
from tests.nodes.reference.deletions import Deletions
from tests.nodes.reference.down_status import scale_down_status
from tests.nodes.reference.group_options import UPCOMING, is_atomic
from tests.nodes.reference.missing_pods import hide_missing
from tests.nodes.reference.places import Place
from tests.nodes.reference.planner import Planner
from tests.nodes.reference.pod_kinds import has_ended, identity, is_expendable
from tests.nodes.reference.pod_lists import PodLists, all_are_new
from tests.nodes.reference.registry import Registry, is_failed
from tests.nodes.reference.scale_up import ScaleUp
from tests.nodes.reference.seen_nodes import as_seen
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.status_document import StatusDocument
from tests.nodes.reference.templates import Templates, fresh_copy
from tests.nodes.reference.up_status import Remaining, UpStatus
from tests.nodes.reference.waiting_pods import waiting_pods
from tests.nodes.reference.world import CloudRefusal, Group, Json, World

from kubetide.units.time import Duration, Instant, after, hours, minutes

LAST_UPDATED = "cluster-autoscaler.kubernetes.io/last-updated"


@dataclass
class Pass:
    """What one loop did and reports."""

    ups: list[UpStatus] = field(default_factory=list)
    down: str = "ScaleDownNotTried"
    scaled_down: list[ScaledDown] = field(default_factory=list)
    unneeded: list[str] = field(default_factory=list)
    cleaned: list[Json] = field(default_factory=list)
    decreased: list[Json] = field(default_factory=list)
    aborted: str = ""
    """Why the loop ended before it looked at anything."""


@dataclass
class Autoscaler:
    """Upstream's autoscaler over a world, which it changes. `step` is a loop and the time after it."""

    world: World
    snapshot: Snapshot = field(default_factory=Snapshot)
    templates: Templates = field(default_factory=Templates)
    pod_lists: PodLists = field(default_factory=PodLists)
    scale_up: ScaleUp = field(default_factory=ScaleUp)
    candidates: Candidates = field(default_factory=Candidates)
    planner: Planner = field(default_factory=Planner)
    document: StatusDocument = field(default_factory=StatusDocument)
    registry: Registry = field(init=False)
    actuator: Actuator = field(init=False)
    started: int | None = None
    """When the first loop ran. Upstream counts from when the process was built."""
    last_scale_up: int = field(init=False)
    last_deletion: int = field(init=False)
    last_failure: int = field(init=False)

    def __post_init__(self) -> None:
        self.registry = Registry(self.world)
        self.actuator = Actuator(self.candidates)
        past = self.world.now - hours(1)
        self.last_scale_up = self.last_deletion = self.last_failure = past

    def let_run(self, until: Instant) -> None:
        """Let time pass, and with it the deletions under way."""
        self.actuator.processes.run(self.world, until)

    def step(self, now: Instant, changes: list[Json], settle: Duration) -> Json:
        """Apply the changes, run a loop, let time pass, and return the outcome of loop and time."""
        world = self.world
        self.let_run(now)
        for change in changes:
            world.apply(deepcopy(change))
        before = dict(world.nodes)
        self.actuator.begin_step()
        world.events.clear()
        done = Pass()
        self._run(done)
        for up in done.ups:
            hide_missing(up)
            up_events.tell_pods(world, up)
        status: Json = {}
        if not done.aborted:
            results = self.actuator.deletions.take_results()
            found = scale_down_status(world, self.planner, done.down, done.scaled_down, results)
            status = {"scaleDownStatus": found}
        healthy = self.registry.is_cluster_healthy()
        document: Json = {}
        if world.flags.on("write-status-configmap"):
            document = deepcopy(self.document.written(world, self.registry, done.aborted))
        self.let_run(after(now, settle))
        return {
            "scaleUps": [one for up in done.ups for one in up.increases],
            "failedScaleUps": [one for up in done.ups for one in up.refused_increases],
            "decreasedTargets": [*self.registry.take_decreases(), *done.decreased],
            "targetSizes": {name: group.target for name, group in sorted(world.groups.items())},
            "deletedNodes": [*done.cleaned, *self.actuator.deleted],
            "evictedPods": list(self.actuator.evicted),
            **node_marks.changes(before, world.nodes),
            "events": list(world.events),
            "unneededNodes": done.unneeded,
            **status,
            "clusterStateHealthy": healthy,
            "statusConfigMap": document,
            "statusConfigMapAnnotations": {LAST_UPDATED: document["time"]} if document else {},
            "scaleUpStatuses": [one.as_recorded() for one in done.ups],
            "expander": [choice.as_recorded() for one in done.ups for choice in one.choices],
        }

    # ── the loop ──

    def _run(self, done: Pass) -> None:
        world, now = self.world, self.world.now
        nodes = [world.nodes[name] for name in sorted(world.nodes)]
        if self.started is None:
            self.started = now
            node_marks.clean_at_start(world, now)  # upstream's cache shows it in the next loop only
            self.planner.load(world, now)
        nodes = [as_seen(one, world.flags) for one in nodes]
        ready = [one for one in nodes if node_marks.is_ready(one) and not one["spec"].get("unschedulable")]
        if not world.flags.on("scale-up-from-zero") and not ready:
            self._wait_for_nodes(done, nodes, self.started)
            return
        under_way = self.actuator.deletions.snapshot()
        cutoff = world.flags.whole("expendable-pods-priority-cutoff")
        pods = [one for one in world.listed("Pod") if not has_ended(one)]
        places = {one["metadata"]["name"]: Place(one) for one in nodes}
        for pod in pods:
            place = places.get(pod["spec"].get("nodeName", ""))
            if place is not None and not is_expendable(pod, cutoff):
                place.pods.append(pod)
        self.snapshot.begin(list(places.values()), world.namespaces)
        templates = self.templates.process(world, self.snapshot, nodes, now)
        self.registry.refresh(nodes, set(templates))
        not_tried = UpStatus("ScaleUpNotTried")
        done.ups.append(not_tried)

        self._remove_unregistered(done)
        if not self.registry.is_cluster_healthy():
            self.planner.clear_unneeded()
            events.on_status(world, "ClusterUnhealthy", "Cluster is unhealthy", warning=True)
            return
        self._remove_failed(done)
        if self._fix_sizes(done):
            return
        nodes = self._add_upcoming(nodes, templates)
        there = [place.node for place in self.snapshot.places]
        waiting = waiting_pods(pods, world.flags)
        drained = sorted(under_way.drained)
        waiting = self.pod_lists.pods_to_help(world, self.snapshot, waiting, drained, now)
        down_forbidden = False
        most = world.flags.whole("max-nodes-total")
        if not waiting:
            not_tried.result = "ScaleUpNotNeeded"
        elif 0 < most <= len(ready):
            not_tried.result = "ScaleUpLimitedByMaxNodesTotal"
            message = f"Max total nodes in cluster reached: {most}"
            events.on_status(world, "MaxNodesTotalReached", message, warning=True)
            not_tried.remaining = [Remaining(one) for one in waiting]
        elif all_are_new(world, waiting, now):
            not_tried.result = "ScaleUpInCooldown"
            down_forbidden = True
        else:
            done.ups = self._help(waiting, there, templates)
            if done.ups[-1].result == "ScaleUpSuccessful":
                done.down = "ScaleDownInCooldown"
        if world.flags.on("scale-down-enabled"):
            self._scale_down(done, nodes, under_way, down_forbidden)
        if world.flags.on("enforce-node-group-min-size"):
            up = self.scale_up.scale_up_to_min(world, self.snapshot, there, templates, self.registry, now)
            if done.ups == [not_tried]:
                done.ups = []
            done.ups.append(up)
            self._note_up(up)

    def _wait_for_nodes(self, done: Pass, nodes: list[Json], started: int) -> None:
        """Do nothing while there are no ready nodes. Upstream gives them ten minutes before it complains."""
        self.planner.clear_unneeded()
        done.aborted = "Cluster has no ready nodes." if nodes else "Cluster has no nodes."
        if not nodes or self.world.now > started + minutes(10):
            events.on_status(self.world, "ClusterUnhealthy", done.aborted, warning=True)

    def _help(self, waiting: list[Json], nodes: list[Json], templates: dict[str, Place]) -> list[UpStatus]:
        """Scale up for the pods; with `--salvo-scale-up` again for those that are left, as long as it helps any."""
        world, ups = self.world, []
        while True:
            up = self.scale_up.scale_up(
                world, self.snapshot, waiting, nodes, templates, self.registry, world.now
            )
            ups.append(up)
            self._note_up(up)
            if not world.flags.on("salvo-scale-up") or up.error or up.result != "ScaleUpSuccessful":
                return ups
            helped = {identity(one) for one in up.triggered}
            waiting = [one for one in waiting if identity(one) not in helped]  # upstream: in any order
            if not helped or not waiting or not self._add_bought(up, templates, f"salvo-{len(ups) - 1}"):
                return ups
            nodes = [place.node for place in self.snapshot.places]

    def _add_bought(self, up: UpStatus, templates: dict[str, Place], suffix: str) -> bool:
        """Put what was just bought into the snapshot, with the pods that it is for; return whether all found a place."""
        for info in up.infos:
            for number in range(info.delta):
                self._add_copy(templates[info.group], f"{number}-{suffix}")
        for pod in up.triggered:
            name = self.snapshot.find(pod, lambda place: place.name.endswith(suffix))
            if name is None:
                return False
            self.snapshot.add_pod(pod, name)
        return True

    def _add_copy(self, template: Place, suffix: str) -> None:
        made = fresh_copy(template, suffix)
        made.node["metadata"].setdefault("annotations", {})[UPCOMING] = "true"
        self.snapshot.add_node(made)

    def _note_up(self, up: UpStatus) -> None:
        if up.result == "ScaleUpSuccessful":
            self.last_scale_up = self.world.now
        for one in up.increases:
            self.candidates.scale_ups[one["group"]] = self.world.now

    def _scale_down(self, done: Pass, nodes: list[Json], under_way: Deletions, forbidden: bool) -> None:
        world, now = self.world, self.world.now
        candidates = self.candidates.scale_down_candidates(world, self.snapshot, nodes, now)
        self.planner.update_cluster_state(world, self.snapshot, nodes, candidates, under_way, now)
        done.unneeded = self.planner.unneeded_names
        self.candidates.note_unneeded(done.unneeded)
        self.document.note_candidates(world, done.unneeded, now)
        if forbidden or self._is_cooling_down():
            done.down = "ScaleDownInCooldown"
        elif not candidates:
            done.down = "ScaleDownNoCandidates"
        else:
            empty, drain = self.planner.nodes_to_delete(world, self.snapshot)
            started = self.actuator.start_deletion(world, self.snapshot, empty, drain, now)
            done.down, done.scaled_down = started.result, started.nodes
            if started.result == "ScaleDownNodeDeleteStarted":
                self.last_deletion = now
                self.registry.recalculate()
        if world.flags.whole("max-bulk-soft-taint-count") != 0:
            soft_taints.update(world, nodes, self.planner.unneeded_names, now)

    def _is_cooling_down(self) -> bool:
        flags, now = self.world.flags, self.world.now
        if flags.on("scale-down-delay-type-local"):
            return False
        return (
            self.last_scale_up + flags.duration("scale-down-delay-after-add") > now
            or self.last_failure + flags.duration("scale-down-delay-after-failure") > now
            or self.last_deletion + flags.duration("scale-down-delay-after-delete") > now
        )

    # ── repairs ──

    def _remove_unregistered(self, done: Pass) -> None:
        """Have the cloud delete machines that never became a Node, as long as their groups stay at their minimum."""
        force = self.world.flags.on("force-delete-unregistered-nodes")
        for name, group in sorted(self.world.groups.items()):
            since = self.registry.unregistered_since
            limit = self.registry.provision_time(group)
            ids = [
                one
                for one in sorted(since)
                if self.world.group_of[one] == name and since[one] + limit < self.world.now
            ]
            if not force:
                ids = ids[: max(0, group.target - group.min)]
            before = len(done.cleaned)
            if ids:
                self._clean(done, group, ids, force=force)  # upstream ends at the first refusal
            for one in done.cleaned[before:]:
                self._note_unregistered(one)

    def _note_unregistered(self, one: Json) -> None:
        if "error" in one:
            message = f"Failed to remove node {one['node']}: {one['error']}"
            events.on_status(self.world, "DeleteUnregisteredFailed", message, warning=True)
        else:
            events.on_status(self.world, "DeleteUnregistered", f"Removed unregistered node {one['node']}")

    def _remove_failed(self, done: Pass) -> None:
        force = self.world.flags.on("force-delete-failed-nodes")
        any_gone = False
        for name, machines in self.registry.machines.items():
            ids = [one.id for one in machines if is_failed(one)]
            if ids:
                any_gone |= self._clean(done, self.world.groups[name], ids, force=force)
        if any_gone:
            self.registry.recalculate()

    def _clean(self, done: Pass, group: Group, ids: list[str], *, force: bool) -> bool:
        """Delete machines; of an all-or-none group all of them, or none. Return whether the cloud took the call."""
        if is_atomic(group):
            if len(ids) != len(group.machines) and group.options.get("allowNonAtomicScaleUpToMax"):
                return True
            ids = sorted(group.machines)
        error = ""
        try:
            self.world.delete_machines(group.id, ids)
        except CloudRefusal as refusal:
            error = str(refusal)
        entry: Json = {"group": group.id, "kind": "cleanup"}
        entry |= ({"force": True} if force else {}) | ({"error": error} if error else {})
        done.cleaned += [{"node": one, **entry} for one in ids]
        return not error

    def _fix_sizes(self, done: Pass) -> bool:
        """Lower targets that have been above what there is for too long; return whether any was lowered."""
        fixed = False
        for name, group in sorted(self.world.groups.items()):
            wrong = self.registry.wrong.get(name)
            if wrong is None or is_atomic(group):
                continue
            delta = wrong.registered - wrong.target
            if wrong.since + self.registry.provision_time(group) >= self.world.now or delta >= 0:
                continue
            entry: Json = {"group": name, "delta": delta}
            done.decreased.append(entry)
            try:
                self.world.decrease(name, delta)
            except CloudRefusal as error:
                entry["error"] = str(error)
                return True
            fixed = True
        return fixed

    def _add_upcoming(self, nodes: list[Json], templates: dict[str, Place]) -> list[Json]:
        """Put nodes that are on their way into the snapshot; return the Nodes that are no such ones."""
        coming = self.registry.upcoming_nodes()
        for group, count in coming.items():
            for number in range(count if group in templates else 0):
                self._add_copy(templates[group], f"upcoming-{number}")
        replaced = {one for group in coming for one in self.registry.not_started(group)}
        for name in replaced:
            self.snapshot.remove_node(name)
        return [one for one in nodes if one["metadata"]["name"] not in replaced]
