"""Upstream's scale-down planner: which nodes are not needed, since when, and which of them may go now."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.deletions import Deletions
from tests.nodes.reference.disruptions import Disruptions
from tests.nodes.reference.eligibility import eligible, is_disabled
from tests.nodes.reference.group_options import count_registered, is_atomic, removal_time
from tests.nodes.reference.node_marks import CANDIDATE, is_ready, taint_time
from tests.nodes.reference.quotas import Quotas
from tests.nodes.reference.removal import Removable, Removals, Unremovable
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.utilization import Utilization
from tests.nodes.reference.world import Json, World


@dataclass
class Unneeded:
    removable: Removable
    since: int
    needed_time: int
    """How long it must be unneeded, by its readiness when it was last found so; 0 in no group."""


@dataclass
class Planner:
    """What lives from loop to loop. `refused_until` says until when a node is not simulated again."""

    removals: Removals = field(default_factory=Removals)
    unneeded: dict[str, Unneeded] = field(default_factory=dict)
    unremovable: dict[str, Unremovable] = field(default_factory=dict)
    refused_until: dict[str, int] = field(default_factory=dict)
    utilizations: dict[str, Utilization] = field(default_factory=dict)
    latest_update: int | None = None
    shortest_interval: int | None = None
    deletions: Deletions = field(default_factory=Deletions)

    @property
    def unneeded_names(self) -> list[str]:
        return sorted(self.unneeded)

    def load(self, world: World, now: int) -> None:
        """Take over unneeded nodes by their soft taints, when the process starts."""
        lifetime = world.flags.duration("node-deletion-candidate-ttl")
        if lifetime == 0:
            return
        for name in sorted(world.nodes):
            node = world.nodes[name]
            since = taint_time(node, CANDIDATE)
            if since is not None and since + lifetime >= now:
                self.unneeded[name] = Unneeded(Removable(node), since, _needed_time(world, node))

    def clear_unneeded(self) -> None:
        self.unneeded = {}

    # ── which nodes are unneeded ──

    def update_cluster_state(
        self,
        world: World,
        snapshot: Snapshot,
        destinations: list[Json],
        candidates: list[Json],
        deletions: Deletions,
        now: int,
    ) -> None:
        """Find unneeded nodes anew. `deletions` are those that were under way when the loop began."""
        self._note_interval(world, now)
        self.deletions = deletions
        under_way = deletions.empty | deletions.drained
        snapshot.fork()
        self._categorize(
            world,
            snapshot,
            {one["metadata"]["name"] for one in destinations} - under_way,
            [one for one in candidates if one["metadata"]["name"] not in under_way],
            now,
        )
        self.removals.hinting.drop_old()
        snapshot.revert()

    def _note_interval(self, world: World, now: int) -> None:
        if self.shortest_interval is None:
            self.shortest_interval = world.flags.duration("scale-down-unneeded-time") or 1
        if self.latest_update is not None:
            self.shortest_interval = min(self.shortest_interval, now - self.latest_update)
        self.latest_update = now

    def _categorize(
        self, world: World, snapshot: Snapshot, destinations: set[str], candidates: list[Json], now: int
    ) -> None:
        self._forget_refusals(snapshot, now)
        found = eligible(world, snapshot, candidates, set(self.refused_until), now)
        nodes = {one["metadata"]["name"]: one for one in candidates}
        for name, reason in found.reasons.items():
            self.unremovable[name] = Unremovable(nodes[name], reason)
        self.utilizations = found.utilizations
        disruptions = Disruptions.of(world)
        removable: list[Removable] = []
        atomic = 0
        for name in found.names:
            if len(removable) - atomic >= self._limit(world):
                break  # the others get no reason at all
            one = self.removals.simulate(world, snapshot, name, destinations, disruptions, now)
            if isinstance(one, Unremovable):
                self.unremovable[name] = one
                self.refused_until[name] = now + world.flags.duration("unremovable-node-recheck-timeout")
                continue
            one.risky = not disruptions.allow_all_at_once(one.pods)
            disruptions.use(one.pods)
            destinations.discard(name)
            removable.append(one)
            group = world.group_of_node(one.node)
            atomic += group is not None and is_atomic(group)
        self._note_unneeded(world, removable, now)

    def _forget_refusals(self, snapshot: Snapshot, now: int) -> None:
        self.unremovable = {}
        self.refused_until = {
            name: until
            for name, until in self.refused_until.items()
            if until > now and snapshot.get(name) is not None
        }

    def _limit(self, world: World) -> int:
        """Return at how many unneeded nodes the search ends; the unneeded ones of the loop before count."""
        parallel = world.flags.whole("max-scale-down-parallelism")
        interval = self.shortest_interval
        assert interval is not None
        loops = max(world.flags.duration("scale-down-unneeded-time"), interval) // interval
        return min(len(self.unneeded) + 2 * parallel, parallel * loops + parallel)

    def _note_unneeded(self, world: World, removable: list[Removable], now: int) -> None:
        before = self.unneeded
        self.unneeded = {
            one.name: Unneeded(
                one, before[one.name].since if one.name in before else now, _needed_time(world, one.node)
            )
            for one in removable
        }

    # ── which of them may go ──

    def nodes_to_delete(self, world: World, snapshot: Snapshot) -> tuple[list[Json], list[Json]]:
        """Return empty nodes and nodes to drain. The snapshot is that of the loop, without simulated removals."""
        spare = Quotas.above_minimum(world, [one.node for one in snapshot.places])
        sizes = {name: group.target for name, group in world.groups.items()}
        names = self.unneeded_names
        empty = [one for one in names if not self.unneeded[one].removable.pods]
        drain = [one for one in names if self.unneeded[one].removable.pods]
        go = [
            one
            for one in (*empty, *drain)
            if not self._refuse(one, self._reason_to_stay(world, one, sizes, spare))
        ]
        chosen = [self.unneeded[one].removable for one in go]
        risky_last = [one for one in chosen if not (one.pods and one.risky)]
        risky_last += [one for one in chosen if one.pods and one.risky]
        whole = self._without_parts_of_atomic_groups(world, snapshot, risky_last)
        ready = [
            one
            for one in whole
            if not self._refuse(one.name, "BlockedByOnCompletionPod" if one.on_completion else "")
        ]
        return [one.node for one in ready if not one.pods], [one.node for one in ready if one.pods]

    def _refuse(self, name: str, reason: str) -> bool:
        if reason:
            self.unremovable[name] = Unremovable(self.unneeded[name].removable.node, reason)
        return bool(reason)

    def _reason_to_stay(self, world: World, name: str, sizes: dict[str, int], spare: Quotas) -> str:
        """Return why the node stays; if nothing speaks against it, its size and resources are taken off what is left."""
        one = self.unneeded[name]
        node = one.removable.node
        if is_disabled(node):
            return "ScaleDownDisabledAnnotation"
        now = self.latest_update
        assert now is not None
        if one.needed_time > 0 and one.since + one.needed_time >= now:
            return "NotUnneededLongEnough" if is_ready(node) else "NotUnreadyLongEnough"
        group = world.group_of_node(node)
        if group is None:
            return "NotAutoscaled"
        if sizes[group.id] - self.deletions.counts.get(group.id, 0) <= group.min:
            return "NodeGroupMinSizeReached"
        if spare.allowed(group.id, node, 1)[1]:
            return "MinimalResourceLimitExceeded"
        spare.take(group.id, node, 1)
        sizes[group.id] -= 1
        return ""

    def _without_parts_of_atomic_groups(
        self, world: World, snapshot: Snapshot, chosen: list[Removable]
    ) -> list[Removable]:
        """Return the nodes of ordinary groups first, then atomic groups of which all nodes may go."""
        kept: list[Removable] = []
        atomic: dict[str, list[Removable]] = {}
        for one in chosen:
            group = world.group_of_node(one.node)
            assert group is not None
            if is_atomic(group):
                atomic.setdefault(group.id, []).append(one)
            else:
                kept.append(one)
        for name in sorted(atomic):
            group, nodes = world.groups[name], atomic[name]
            if len(nodes) in (group.target, count_registered(group, snapshot)):
                kept += nodes
            else:
                for one in nodes:
                    self._refuse(one.name, "AtomicScaleDownFailed")
        return kept


def _needed_time(world: World, node: Json) -> int:
    group = world.group_of_node(node)
    return 0 if group is None else removal_time(world, group, ready=is_ready(node))
