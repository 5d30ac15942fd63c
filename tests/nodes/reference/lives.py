"""Random lives of clusters, step by step: what follows from the decisions of a loop, and what happens by itself."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

from tests.nodes.reference import drawn_rules, objects
from tests.nodes.reference.actuation import DELAY_DELETION
from tests.nodes.reference.drawn import Drawn
from tests.nodes.reference.node_marks import TO_BE_DELETED, has_taint, taint_time
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import is_expendable
from tests.nodes.reference.snapshot import refusals
from tests.nodes.reference.world import Json, Key, World

from kubetide.units.time import ZERO, Duration, Instant, after, before, format_rfc3339, parse_rfc3339, seconds

DELAY = f"{DELAY_DELETION}volumes"

FAILURES = (
    ("OutOfResources", "STOCKOUT", "none left"),
    ("OutOfResources", "STOCKOUT", "none left"),
    ("OutOfResources", "STOCKOUT", "no such machine"),
    ("OutOfResources", "STOCKOUT", "sold"),
    ("OutOfResources", "STOCKOUT", "zone is full"),
    ("OutOfResources", "QUOTA", "no quota"),
    ("Other", "STOCKOUT", "none left"),
    ("Other", "BROKEN", ""),
)
"""Why a machine cannot be made: class, code and message."""


@dataclass
class Life:
    """The further life of a drawn cluster. `world` is always the reference's, at the time of the step that is drawn."""

    drawn: Drawn
    advance: int = 0
    """Seconds from the loop before to the next one."""
    settle: Duration = ZERO
    """How much of it the last step has looked at already."""

    def next_time(self, world: World, number: int) -> Instant:
        """Return when the next loop runs."""
        draw = self.drawn.random
        self.advance = draw.choice((20, 40, 60, 70, 130, 200)) if number else 60
        return after(world.now, Duration(seconds(self.advance) - self.settle))

    def next_step(self, world: World, evicted: list[Json] | None) -> Json:
        """Return the next step without its expectations. `evicted` were evicted since the loop before, if there was one."""
        changes: list[Json] = []
        if evicted is not None:
            self._follow(world, evicted, changes)
        self._outside_changes(world, changes)
        ghost = deepcopy(world)
        for change in changes:
            ghost.apply(deepcopy(change))
        changes += self._schedule(ghost)
        self.settle = seconds(self.drawn.random.choice((3, 15, 19)) if self.drawn.slow else 15)
        return {
            "now": format_rfc3339(world.now),
            "advance": f"{self.advance}s",
            "settle": f"{self.settle // seconds(1)}s",
            "changes": changes,
        }

    def _follow(self, world: World, evicted: list[Json], changes: list[Json]) -> None:
        """What follows from the last loop: deleted nodes go, pods come back, new machines and their nodes appear."""
        draw = self.drawn.random
        for name, one in sorted(world.nodes.items()):
            gone = not world.has_machine(one) and world.group_of_node(one) is not None
            if gone and (draw.random() < 0.8 or self._is_due(world, one)):
                changes.append({"op": "delete", "kind": "Node", "name": name})
                changes += [_gone(pod) for pod in world.pods_on(name)]
        for one in evicted:
            template = one["pod"].split("/")[1].rsplit("-", 1)[0]
            found = [each for each in self.drawn.templates if each["name"] == template]
            if found and draw.random() < 0.9:
                changes.append(_added(self.drawn.pod(found[0], before(world.now, seconds(15)))))
        for group in sorted(world.groups):
            there = world.groups[group]
            for machine in sorted(there.machines.values(), key=lambda each: each.id):
                if machine.state == "creating" and not machine.error_class and draw.random() < 0.6:
                    running = {"id": machine.id, "state": "running"}
                    changes.append({"op": "setInstance", "nodeGroup": group, "instance": running})
                    if draw.random() < 0.9:
                        self._join(world, group, machine.id.rsplit("/", 1)[1], changes)
            for _ in range(there.target - len(there.machines)):
                if draw.random() <= 0.75:
                    self._start_machine(world, group, changes)

    def _is_due(self, world: World, node: Json) -> bool:
        """Return whether a Node without a machine goes now: after five minutes it would be deleted once more.

        Where a Node vanishes while its deletion lasts, production does otherwise on purpose.
        """
        since = taint_time(node, TO_BE_DELETED)
        return self.drawn.slow and since is not None and world.now - since > seconds(100)

    def _start_machine(self, world: World, group: str, changes: list[Json]) -> None:
        """Make a machine that the group asks for: it fails, is being made for a while, or joins at once."""
        self.drawn.made += 1
        name = f"{group}-x{self.drawn.made:03}"
        instance: Json = {"id": f"cloud://{group}/{name}", "state": "running"}
        fate = self.drawn.random.random()
        if fate < 0.2:
            instance["state"] = "creating"
        if fate < 0.08:
            names = ("errorClass", "errorCode", "errorMessage")
            instance |= dict(zip(names, self.drawn.random.choice(FAILURES), strict=True))
        changes.append({"op": "addInstance", "nodeGroup": group, "instance": instance})
        if instance["state"] == "running":
            self._join(world, group, name, changes)

    def _join(self, world: World, group: str, name: str, changes: list[Json]) -> None:
        at = before(world.now, seconds(self.drawn.random.choice((5, 5, 90))))
        made = self.drawn.node(group, name, at, ready=self.drawn.random.random() < 0.85)
        self.drawn.traits.mark_node(made, 0.5)
        changes.append({"op": "add", "kind": "Node", "object": made, "nodeGroup": group})
        changes += [_added(pod) for pod in self.drawn.daemon_pods(world.listed("DaemonSet"), Place(made), at)]

    def _outside_changes(self, world: World, changes: list[Json]) -> None:
        """What happens by itself: pods come and go, nodes break and mend, people change things, the cloud refuses."""
        gone = {(each.get("namespace", ""), each["name"]) for each in changes if each["op"] == "delete"}
        self._move_load(world, gone, changes)
        self._break_nodes(world, gone, changes)
        self._change_rules(world, changes)
        self._change_cloud(world, changes)
        if drawn_rules.reads_priorities(self.drawn.story):
            self._change_priorities(world, changes)
        if self.drawn.slow:
            self._delay_deletions(world, gone, changes)

    def _move_load(self, world: World, gone: set[Key], changes: list[Json]) -> None:
        draw = self.drawn.random
        for _ in range(draw.choice((0, 0, 1, 1, 2))):
            template = draw.choice(self.drawn.templates)
            at = before(world.now, seconds(draw.choice((1, 20, 40))))
            changes += [_added(self.drawn.pod(template, at)) for _ in range(draw.choice((1, 2, 3, 5, 9)))]
        given_up = self._given_up(world) if self.drawn.relations.is_on else set()
        for key, pod in sorted(world.pods.items()):
            of_node = pod["metadata"]["name"].startswith(("agent-", "proxy-"))
            if key in gone or of_node:
                continue
            if draw.random() < 0.12 or key in given_up:
                changes.append(_gone(pod))
            elif self.drawn.relations.ends() and pod["spec"].get("nodeName"):
                changes.append({"op": "update", "kind": "Pod", "object": _ending(pod, world.now)})

    def _given_up(self, world: World) -> set[Key]:
        """Return the pod of each workload that has waited longest, if that is longer than it takes to get a node.

        Rules between pods may forbid a node that was bought for them. Where none of the pods that it was bought for goes
        there, production backs the group off for them on purpose; upstream buys the same node again.
        """
        longest: dict[str, tuple[str, Key]] = {}
        for key, pod in sorted(world.pods.items()):
            since = pod["metadata"]["creationTimestamp"]
            if not pod["spec"].get("nodeName") and parse_rfc3339(since) < before(world.now, seconds(150)):
                workload = key[1].rsplit("-", 1)[0]
                longest[workload] = min(longest.get(workload, (since, key)), (since, key))
        return {key for _, key in longest.values()}

    def _break_nodes(self, world: World, gone: set[Key], changes: list[Json]) -> None:
        for name, one in sorted(world.nodes.items()):
            ready = _is_ready(one)
            if ("", name) in gone:
                continue
            changed = deepcopy(one)
            if self.drawn.traits.change_node(changed):
                changes.append({"op": "update", "kind": "Node", "object": changed})
                continue
            if self.drawn.random.random() >= (0.04 if ready else 0.4):
                continue
            changed["status"]["conditions"][0] |= {
                "status": "False" if ready else "True",
                "lastTransitionTime": format_rfc3339(world.now),
            }
            changes.append({"op": "update", "kind": "Node", "object": changed})

    def _change_rules(self, world: World, changes: list[Json]) -> None:
        draw = self.drawn.random
        for budget in world.listed("PodDisruptionBudget"):
            if draw.random() < 0.2:
                changed = deepcopy(budget)
                changed["status"]["disruptionsAllowed"] = draw.randint(0, 2)
                changes.append({"op": "update", "kind": "PodDisruptionBudget", "object": changed})
        changes += [_gone(owner) for owner in world.listed("ReplicaSet") if draw.random() < 0.03]

    def _change_cloud(self, world: World, changes: list[Json]) -> None:
        draw = self.drawn.random
        parallel = world.flags.on("parallel-scale-up")
        for group, there in sorted(world.groups.items()):
            if draw.random() < (0.25 if parallel else 0.06):
                message = draw.choice(("", "no quota", 'no "small" one'))
                changes.append({"op": "increaseSizeError", "nodeGroup": group, "message": message})
            if draw.random() < 0.03:
                low, high = draw.choice(((0, there.max), (1, there.max), (there.min, there.max + 2)))
                changes.append({"op": "setGroup", "nodeGroup": group, "min": low, "max": high})
            elif parallel and draw.random() < 0.2:
                # Groups below their minimum grow together.
                changes.append({"op": "setGroup", "nodeGroup": group, "min": there.max, "max": there.max + 2})
            # Production reports a refused deletion of such a group in another way; it does the same.
            if draw.random() < 0.03 and not there.options.get("zeroOrMaxNodeScaling"):
                message = draw.choice(("", "", "not now"))
                changes.append({"op": "deleteNodesError", "nodeGroup": group, "message": message})

    def _delay_deletions(self, world: World, gone: set[Key], changes: list[Json]) -> None:
        """Refuse a few evictions, and let somebody ask that nodes wait, or no longer."""
        draw = self.drawn.random
        for (namespace, name), _ in sorted(world.pods.items()):
            if draw.random() < 0.1:
                refused = {"namespace": namespace, "name": name, "count": draw.choice((1, 3, 9, -1, 0))}
                changes.append({"op": "evictionError", **refused})
        touched = {
            one["object"]["metadata"]["name"]
            for one in changes
            if one.get("kind") == "Node" and "object" in one
        }
        for name, one in sorted(world.nodes.items()):
            asked = DELAY in one["metadata"].get("annotations", {})
            # Production looks at the annotation as it is when the pods are gone, upstream as it was in the loop.
            stays = has_taint(one, TO_BE_DELETED) or ("", name) in gone or name in touched
            if stays or draw.random() >= (0.3 if asked else 0.1):
                continue
            changed = deepcopy(one)
            notes = changed["metadata"].setdefault("annotations", {})
            if asked:
                del notes[DELAY]
            else:
                notes[DELAY] = "1"
            changes.append({"op": "update", "kind": "Node", "object": changed})

    def _change_priorities(self, world: World, changes: list[Json]) -> None:
        draw = self.drawn.random
        there = world.listed("ConfigMap")
        if draw.random() >= 0.3:
            return
        if there and draw.random() < 0.2:
            changes += [_gone(one) for one in there]
        else:
            made = drawn_rules.draw_priorities(draw)
            changes.append({"op": "update" if there else "add", "kind": "ConfigMap", "object": made})

    def _schedule(self, world: World) -> list[Json]:
        """Bind waiting pods to the first node with room, as a scheduler would."""
        found = []
        places = [Place(one, world.pods_on(name)) for name, one in sorted(world.nodes.items())]
        ready = [one for one in places if _is_ready(one.node)]
        by_priority = sorted(world.listed("Pod"), key=lambda one: -(one["spec"].get("priority") or 0))
        for pod in by_priority:
            if pod["spec"].get("nodeName"):
                continue
            # An expendable pod would be pushed out again; so it stays off the nodes that were bought for others.
            expendable = is_expendable(pod, world.flags.whole("expendable-pods-priority-cutoff"))
            there = [one for one in ready if not expendable or "-x" not in one.name]
            place = next((one for one in there if not refusals(pod, one, places, world.namespaces)), None)
            if place is not None:
                placed = objects.bound(pod, place.name)
                place.pods.append(placed)
                found.append({"op": "update", "kind": "Pod", "object": placed})
        return found


def _is_ready(node: Json) -> bool:
    return bool(node["status"]["conditions"][0]["status"] == "True")


def _added(pod: Json) -> Json:
    return {"op": "add", "kind": "Pod", "object": pod}


def _ending(pod: Json, at: Instant) -> Json:
    """Return the pod once it is deleted. One that was deleted before stays as it is."""
    changed = deepcopy(pod)
    changed["metadata"].setdefault("deletionTimestamp", format_rfc3339(at))
    changed["metadata"].setdefault("deletionGracePeriodSeconds", 30)
    return changed


def _gone(one: Json) -> Json:
    meta = one["metadata"]
    return {"op": "delete", "kind": one["kind"], "namespace": meta["namespace"], "name": meta["name"]}
