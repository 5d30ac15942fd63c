"""The recommender's state; ``State.apply(delta)`` is the only way to change it from outside.

A pass takes things over in upstream's order: VPAs, pods, samples, OOMs, and only then drops the pods
that are gone, so that the last OOM of a pod still counts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.objects.meta import Key
from kubetide.plan.board import NodeSize
from kubetide.units.selectors import SelectorError
from kubetide.units.time import Duration, Instant, hours
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.links import Links
from kubetide.vertical.recommender.facts.members import (
    Group,
    GroupKey,
    LabelSets,
    Members,
    PodEntry,
    Stored,
    Vpa,
)
from kubetide.vertical.recommender.facts.views import (
    CheckpointView,
    History,
    Oom,
    PodView,
    Samples,
    StatusView,
    Usage,
    VpaView,
)
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.targets.floors import Floors, Place
from kubetide.vertical.recommender.targets.rollback import Past, Watch
from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.alignment import align
from kubetide.vertical.recommender.usage.checkpoints import UNLOADED, load_checkpoints
from kubetide.vertical.recommender.usage.containers import Containers
from kubetide.vertical.recommender.usage.feeding import SampleRows, feed, feed_history, floor_of
from kubetide.vertical.resources.policies import container_policy

AGGREGATES_COLLECTED_EVERY: Duration = hours(1)


class State:
    """All input of recommendations. Only ``apply`` and ``absorb`` change it.

    Attributes:
        views: All VPAs, also those of other recommenders.
        vpas: Those that this one serves.
        stored: Names of VPAs by namespace and name of each stored checkpoint.
        sizes: What new nodes have left, where targets must fit them.
        floors, pasts: What recommendations do not fall below, and what pods asked for before.
        problems: Checkpoints that could not be loaded and OOMs that were too old, as sentences, of the last pass.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.at = Instant(0)
        self.aggregates = Aggregates(self.settings)
        self.containers = Containers()
        self.labels = LabelSets()
        self.members = Members()
        self.groups, self.pods, self.vpas = self.members.groups, self.members.pods, self.members.vpas
        self.views: dict[Key, VpaView] = {}
        self.stored: dict[Key, str] = {}
        self.problems: list[str] = []
        self.aggregates_collected: Instant | None = None
        self.checkpoints_collected: Instant | None = None
        self.ghosts: set[Key] = set()
        self.untracked: dict[Key, PodView] = {}
        self.sample_rows = SampleRows()
        self.sizes: tuple[NodeSize, ...] = ()
        self.floors = Floors()
        self.pasts: dict[Place, Past] = {}
        self._links = Links()
        self._relink: set[str] = set()

    def apply(self, delta: Delta) -> None:
        """Apply what was gathered since the last pass."""
        self.at, self.sizes, self.problems, self.containers.oom_samples = delta.at, tuple(delta.sizes), [], []
        if self.checkpoints_collected is None:
            self.checkpoints_collected = delta.at
        # History comes first: what policies say of windows does not hold for it.
        self._feed_history(delta.history)
        for vpa in delta.vpas:
            self._put_vpa(vpa)
        for key in delta.gone_vpas:
            self.views.pop(key, None)
            self._forget_vpa(key)
        self._link()
        for status in delta.statuses:
            self._put_status(status)
        for checkpoint in delta.checkpoints:
            self.stored[checkpoint.namespace, checkpoint.name] = checkpoint.vpa
        for key in delta.gone_checkpoints:
            self.stored.pop(key, None)
        if delta.load:
            self._load(delta.load)
        if self.settings.forget_pods_first:
            self._forget_pods(delta)
        for pod in delta.pods:
            self._put_pod(pod)
        self._track_more(set(delta.gone_pods))
        self.floors.expire(delta.at)
        window = self.settings.rollback_window
        watch = Watch(self.members, self.pasts, self.floors, delta.at, window) if window > 0 else None
        if watch is not None:
            watch.note_requests()
        if delta.samples is not None:
            self._feed(delta.samples)
            if watch is not None:
                watch.note_throttling(delta.samples)
        for oom in delta.ooms:
            if watch is not None:
                watch.note_kill(oom)
            self._feed_oom(oom)
        self._forget_pods(delta)
        if self.floors.held:
            self.floors.keep_only(self.vpas)
        cells = [rows for key in sorted(self.vpas) for _, rows in self.cells_of(self.vpas[key])]
        align(self.aggregates, [rows for rows in cells if len(rows) > 1], self.members.loaded())

    # ── VPAs ──

    def _put_vpa(self, view: VpaView) -> None:
        key = view.namespace, view.name
        self.views[key] = view
        if not self.settings.serves(view.namespace, view.recommenders):
            self._forget_vpa(key)
            return
        try:
            selector = view.target.read()
        except SelectorError as exc:
            self.problems.append(f"VPA {view.namespace}/{view.name}: selector: {exc}")
            return
        old = self.vpas.get(key)
        stored = Stored() if old is None else old.stored
        if old is not None and str(old.selector) != str(selector):
            # What was loaded for the old pods says nothing of the new ones.
            self._forget_vpa(key)
            old = None
        if old is None:
            self.vpas[key] = Vpa(view, selector, stored=stored)
            self._links.put(key, selector)
            self._relink.add(view.namespace)
            return
        if selector.selectable != old.selector.selectable:
            self._links.put(key, selector)
            self._relink.add(view.namespace)
        changed = view.policy != old.view.policy
        old.view, old.selector, old.cells = view, selector, None
        if changed:
            for group in old.groups:
                self._follow(old, self.groups[group].aggregates)

    def _forget_vpa(self, key: Key) -> None:
        vpa = self.vpas.pop(key, None)
        if vpa is None:
            return
        self._links.drop(key)
        self.aggregates.drop(vpa.loaded.values())
        for group in vpa.groups:
            self.groups[group].vpas.remove(key)

    def _link(self) -> None:
        """Find anew which pods each VPA selects, in the namespaces where that may have changed."""
        if not self._relink:
            return
        for key, group in self.groups.items():
            if key[0] in self._relink:
                self._link_group(key, group)
        self._relink = set()

    def _link_group(self, key: GroupKey, group: Group) -> None:
        found = self._links.matching(key[0], self.labels.sets[key[1]])
        before = set(group.vpas)
        for name in before - set(found):
            vpa = self.vpas[name]
            vpa.groups.pop(key, None)
            vpa.cells = None
        group.vpas = found
        for name in found:
            if name not in before or key not in self.vpas[name].groups:
                vpa = self.vpas[name]
                vpa.groups[key] = None
                vpa.cells = None
                self._follow(vpa, group.aggregates)

    def _follow(self, vpa: Vpa, aggregates: dict[str, int]) -> None:
        if self.settings.per_vpa_config:
            for container, row in aggregates.items():
                self.aggregates.follow(row, container_policy(vpa.view.policy, container))

    def _put_status(self, view: StatusView) -> None:
        vpa = self.vpas.get((view.namespace, view.name))
        if vpa is not None:
            vpa.stored = Stored.of(view.status)

    def _load(self, checkpoints: Sequence[CheckpointView]) -> None:
        known = []
        for one in checkpoints:
            if (one.namespace, one.vpa) in self.vpas:
                known.append(one)
            else:
                self.problems.append(
                    f"cannot load checkpoint to missing VPA object {one.namespace}/{one.vpa}"
                )
        for one, (row, problem) in zip(known, load_checkpoints(self.aggregates, known, self.at), strict=True):
            if problem:
                self.problems.append(f"{UNLOADED} {one.namespace}/{one.vpa}. Reason: {problem}")
                continue
            vpa = self.vpas[one.namespace, one.vpa]
            if one.container in vpa.loaded:
                self.aggregates.drop([vpa.loaded[one.container]])
            vpa.loaded[one.container] = row
            vpa.cells = None

    # ── pods ──

    def _put_pod(self, view: PodView) -> None:
        key = view.namespace, view.name
        self.untracked.pop(key, None)
        # Upstream watches no pending pods: one with the name of a tracked pod means that this pod is gone.
        if view.phase == "Pending":
            self.ghosts.add(key)
            return
        self.ghosts.discard(key)
        if self.settings.memory_saver and not self._links.matching(view.namespace, view.labels):
            self.untracked[key] = view
        else:
            self.track(view)

    def _track_more(self, gone: set[Key]) -> None:
        """Track pods that a VPA selects by now and that still exist."""
        for view in [one for key, one in self.untracked.items() if key not in gone]:
            if self._links.matching(view.namespace, view.labels):
                self._put_pod(view)

    def track(self, view: PodView) -> PodEntry:
        """Update and return the entry of a pod, its containers, and its present groups."""
        key = view.namespace, view.name
        labels = self.labels.number(view.labels)
        pod = self.pods.get(key)
        if pod is None:
            pod = self.pods[key] = PodEntry(labels, view.phase, {}, view.init)
            self._group(view.namespace, labels).pods += 1
        elif pod.labels != labels:
            self.groups[view.namespace, pod.labels].pods -= 1
            pod.labels = labels
            self._group(view.namespace, labels).pods += 1
            for name, row in pod.containers.items():
                self.containers.aggregate[row] = self.aggregate_of(view.namespace, labels, name)
        pod.phase, pod.init, pod.resources = view.phase, view.init, view.resources
        for name in view.containers:
            if name not in pod.containers:
                pod.containers[name] = self.containers.add(self.aggregate_of(view.namespace, labels, name))
                self.sample_rows.forget()
        return pod

    def _group(self, namespace: str, labels: int) -> Group:
        key = namespace, labels
        group = self.groups.get(key)
        if group is None:
            group = self.groups[key] = Group()
            self._link_group(key, group)
        return group

    def aggregate_of(self, namespace: str, labels: int, container: str) -> int:
        """Return the row of an aggregate, a new one if there is none."""
        group = self._group(namespace, labels)
        row = group.aggregates.get(container)
        if row is None:
            row = self.aggregates.add(self.at)
            group.aggregates[container] = row
            for name in group.vpas:
                vpa = self.vpas[name]
                vpa.cells = None
                self._follow(vpa, {container: row})
        return row

    def _forget_pods(self, delta: Delta) -> None:
        for key in (*delta.gone_pods, *sorted(self.ghosts)):
            self.untracked.pop(key, None)
            if (pod := self.pods.pop(key, None)) is not None:
                self.groups[key[0], pod.labels].pods -= 1
                for row in pod.containers.values():
                    self.containers.drop(row)
                self.sample_rows.forget()
        self.ghosts.clear()

    # ── usage ──

    def _feed_history(self, history: Sequence[History]) -> None:
        """Add what is known of containers from before the start; pods that are not found after that are dropped."""
        feeds: list[tuple[int, Usage]] = []
        for one in history:
            pod = self.track(PodView(one.namespace, one.pod, one.labels, "Unknown", tuple(one.containers)))
            self.ghosts.add((one.namespace, one.pod))
            feeds += [(pod.containers[name], usage) for name, usage in one.containers.items()]
        feed_history(self.containers, self.aggregates, feeds)

    def _feed(self, samples: Samples) -> None:
        rows = self.sample_rows.of(self.pods, samples)
        self._ensure_aggregates(self.sample_rows.without_aggregate(self.containers, samples))
        feed(self.containers, self.aggregates, rows, samples)

    def _ensure_aggregates(self, rows: Int64Vector) -> None:
        """Make aggregates anew that have been dropped although their containers still use something."""
        lacking = self.containers.aggregate[rows] < 0
        if not lacking.any():
            return
        fed = set(rows[lacking].tolist())
        for (namespace, _), pod in self.pods.items():
            for name, row in pod.containers.items():
                if row in fed:
                    self.containers.aggregate[row] = self.aggregate_of(namespace, pod.labels, name)

    def _feed_oom(self, oom: Oom) -> None:
        """Add what an OOM says; one of a container that is not tracked is passed over."""
        pod = self.pods.get((oom.namespace, oom.pod))
        row = None if pod is None else pod.containers.get(oom.container)
        if pod is None or row is None:
            return
        self._ensure_aggregates(np.array([row]))
        if self.settings.oom_lower_bound:
            floor = floor_of(self.containers, self.aggregates, row, oom)
            for vpa in self.members.vpas_of(oom.namespace, pod):
                self.floors.put((*vpa, oom.container, "memory"), floor)
            return
        by_window = self.settings.oom_age_by_window
        if not self.containers.add_oom(self.aggregates, row, oom.memory, oom.at, by_window=by_window):
            where = f"{oom.namespace}/{oom.pod}/{oom.container}"
            self.problems.append(f"OOM of {where} is discarded: it is older than a window of memory peaks")

    # ── garbage ──

    def collect(self, now: Instant) -> None:
        """Drop aggregates that are outdated, or empty and of no pod that may return; at most hourly.

        Source: VPA 1.8, ClusterState.garbageCollectAggregateCollectionStates.
        """
        last = self.aggregates_collected
        if last is not None and now - last < AGGREGATES_COLLECTED_EVERY:
            return
        self.aggregates_collected = now
        useful = self.members.contributive()
        gone = self.aggregates.expired(now)
        empty = self.aggregates.count == 0
        rows = {row for group in self.groups.values() for row in group.aggregates.values()}
        self.keep_only({row for row in rows if not (gone[row] or (empty[row] and row not in useful))})
        for key, group in list(self.groups.items()):
            if not group.pods and not group.aggregates:
                for name in group.vpas:
                    self.vpas[name].groups.pop(key, None)
                del self.groups[key]
        self.labels.keep_only({number for _, number in self.groups})

    def keep_only(self, aggregates: set[int]) -> None:
        """Drop all aggregates but these rows."""
        dropped: list[int] = []
        for group in self.groups.values():
            gone = [name for name, row in group.aggregates.items() if row not in aggregates]
            dropped += [group.aggregates.pop(name) for name in gone]
            for vpa in group.vpas if gone else ():
                self.vpas[vpa].cells = None
        if dropped:
            self.containers.orphan(dropped)
            self.aggregates.drop(dropped)

    # ── reading ──

    def cells_of(self, vpa: Vpa) -> Sequence[tuple[str, tuple[int, ...]]]:
        """Return the VPA's containers, ordered, each with its summed rows; loaded ones come last."""
        if vpa.cells is None:
            found: dict[str, list[int]] = {}
            for group in sorted(vpa.groups):
                for container, row in self.groups[group].aggregates.items():
                    found.setdefault(container, []).append(row)
            for container, row in vpa.loaded.items():
                found.setdefault(container, []).append(row)
            vpa.cells = tuple((name, tuple(found[name])) for name in sorted(found))
        return vpa.cells

    def pod_count(self, vpa: Vpa) -> int:
        """Return how many tracked pods the VPA selects."""
        return sum(self.groups[group].pods for group in vpa.groups)

    def aggregate_count(self) -> int:
        """Return the number of aggregates in memory, without loaded checkpoints."""
        return sum(len(group.aggregates) for group in self.groups.values())
