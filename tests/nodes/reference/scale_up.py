"""Upstream's scale-up: which group grows by how many nodes for the pods that have no place."""

from __future__ import annotations

from dataclasses import dataclass, field
from json import dumps

from tests.nodes.reference import events
from tests.nodes.reference.binpacking import Estimate, node_limit
from tests.nodes.reference.equivalence import PodGroup, grouped, reject_all, reject_failed, those_that_fit
from tests.nodes.reference.expanders import Option, choose
from tests.nodes.reference.group_options import is_atomic
from tests.nodes.reference.places import Place
from tests.nodes.reference.provider_rules import are_alike
from tests.nodes.reference.quotas import Quotas
from tests.nodes.reference.registry import Registry
from tests.nodes.reference.similar import Resize, balanced
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.up_status import Remaining, UpStatus
from tests.nodes.reference.world import CloudRefusal, Group, Json, World

FAILED = "scale-up execution failed"
FILTERED_OUT = "expansion options filtered out and no longer considered"


class _Stopped(Exception):
    """A scale-up that ends with an error before a group was tried."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass
class ScaleUp:
    """Upstream's orchestrator. It keeps nothing from loop to loop."""

    def scale_up(
        self,
        world: World,
        snapshot: Snapshot,
        pods: list[Json],
        nodes: list[Json],
        templates: dict[str, Place],
        registry: Registry,
        now: int,
    ) -> UpStatus:
        """Raise a group, and those similar to it, for the pods. `nodes` are all of the snapshot, upcoming ones too."""
        return _Attempt(world, snapshot, nodes, templates, registry, now).help(pods)

    def scale_up_to_min(
        self,
        world: World,
        snapshot: Snapshot,
        nodes: list[Json],
        templates: dict[str, Place],
        registry: Registry,
        now: int,
    ) -> UpStatus:
        """Raise all groups that are below their minimum."""
        return _Attempt(world, snapshot, nodes, templates, registry, now).fill()


@dataclass
class _Attempt:
    world: World
    snapshot: Snapshot
    nodes: list[Json]
    templates: dict[str, Place]
    registry: Registry
    now: int
    quotas: Quotas = field(init=False)
    status: UpStatus = field(init=False)
    skipped: dict[str, list[str]] = field(default_factory=dict)
    fitting: dict[str, list[PodGroup]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.quotas = Quotas.of(self.world, self.nodes)
        self.status = UpStatus("ScaleUpNotTried")

    @property
    def groups(self) -> list[Group]:
        return [group for _, group in sorted(self.world.groups.items())]

    # ── for pods ──

    def help(self, pods: list[Json]) -> UpStatus:
        status, pod_groups = self.status, grouped(pods)
        valid = [group for group in self.groups if self.is_valid(group)]
        for group in valid:
            template = self.templates[group.id]
            self.fitting[group.id] = those_that_fit(self.snapshot, pod_groups, group.id, template)
        options = [one for one in map(self.option, valid) if one is not None]
        if not options:
            return self.ended("ScaleUpNoOptionsAvailable", pod_groups)
        choice = choose(self.world, options, self.templates)
        if choice is None:
            reject_all(pod_groups, FILTERED_OUT)
            return self.ended("ScaleUpNoOptionsAvailable", pod_groups)
        status.choices.append(choice)
        best = choice.chosen
        status.triggered = best.pods
        try:
            count = self.capped(best.node_count, len(self.nodes))
            count, _ = self.quotas.allowed(best.group, self.templates[best.group].node, count)
            self.make_sure_it_exists(self.world.groups[best.group])
        except _Stopped as stop:
            status.error = stop.kind, str(stop)
            if stop.kind == "transientError":
                reject_all(pod_groups, FAILED)
                self.note_remaining(pod_groups)
            status.result = "ScaleUpError"
            return status
        plan = self.shared_out(best.group, count)
        if not self.execute(plan):
            reject_failed(pod_groups, self.not_grown(plan), FAILED)
            self.note_remaining(pod_groups)
            return status
        status.infos = plan
        status.awaiting = [
            pod for one in pod_groups if one.schedulable and best.group in one.errors for pod in one.pods
        ]
        return self.ended("ScaleUpSuccessful", pod_groups)

    def ended(self, result: str, pod_groups: list[PodGroup]) -> UpStatus:
        self.status.result = result
        self.status.considered = [one.id for one in self.groups]
        self.note_remaining(pod_groups)
        return self.status

    def note_remaining(self, pod_groups: list[PodGroup]) -> None:
        self.status.remaining = [
            Remaining(pod, one.errors, self.skipped)
            for one in pod_groups
            if not one.schedulable
            for pod in one.pods
        ]

    def is_valid(self, group: Group) -> bool:
        """Return whether the group may grow; if not, note why. The first reason counts."""
        reason = self.skip_reason(group)
        if reason:
            self.skipped[group.id] = reason
        return not reason

    def skip_reason(self, group: Group) -> list[str]:
        reason = self.not_ready(group)
        if reason:
            return reason
        if group.target >= group.max:
            return ["max node group size reached"]
        count = 1
        if is_atomic(group):
            count = group.max - group.target
            most = self.world.flags.whole("max-nodes-total")
            if most != 0 and len(self.nodes) + count > most:
                return ["atomic scale-up exceeds cluster node count limit"]
        if group.id not in self.templates:
            return ["not ready for scale-up"]
        return self.quotas.refusal(group.id, self.templates[group.id].node, count)

    def not_ready(self, group: Group) -> list[str]:
        if not group.exists or self.registry.is_safe_to_scale_up(group.id, self.now):
            return []
        if not self.registry.is_group_healthy(group.id):
            return ["not ready for scale-up"]
        return ["in backoff after failed scale-up"]

    def option(self, group: Group) -> Option | None:
        """Estimate how many nodes of the group the pods need. A group that has all or none gets its maximum."""
        pod_groups = self.fitting[group.id]
        if not pod_groups:
            return None
        similar = self.similar_to(group)
        limit = node_limit(self.world, [group, *similar], len(self.nodes))
        estimate = Estimate(self.snapshot, self.templates[group.id], limit)
        count, pods = estimate.place_all(pod_groups)
        if count and is_atomic(group):
            count = group.max
        if not count or not pods:
            return None
        return Option(group.id, count, pods, [one.id for one in similar])

    def similar_to(self, group: Group) -> list[Group]:
        """Groups of similar templates that are safe to scale up and take all pod groups that this one takes."""
        if not self.world.flags.on("balance-similar-node-groups") or is_atomic(group):
            return []
        mine = self.fitting[group.id]
        found = []
        for other in self.groups:
            if other is group or other.id not in self.fitting:
                continue
            if not are_alike(self.world, self.templates[group.id], self.templates[other.id]):
                continue
            if other.exists and not self.registry.is_safe_to_scale_up(other.id, self.now):
                continue
            if all(one in self.fitting[other.id] for one in mine):
                found.append(other)
        return found

    def capped(self, count: int, there: int) -> int:
        """Return how many of the nodes the limit of the whole cluster allows, if `there` are counted before."""
        most = self.world.flags.whole("max-nodes-total")
        if most <= 0 or there + count <= most:
            return count
        self.say("MaxNodesTotalReached", f"Max total nodes in cluster reached: {most}", warning=True)
        if most - there < 1:
            raise _Stopped("transientError", "max node total count already reached")
        return most - there

    def make_sure_it_exists(self, group: Group) -> None:
        if not group.exists:
            raise _Stopped("internalError", "not implemented")

    def shared_out(self, name: str, count: int) -> list[Resize]:
        """Balance the new nodes over the group and those similar to it; each is cut to what the quotas have left then.

        What is cut from one is not given to another.
        """
        group = self.world.groups[name]
        similar = [
            one
            for one in self.similar_to(group)
            if not self.quotas.refusal(one.id, self.templates[one.id].node, 1)
        ]
        plan = balanced([group, *similar], count)
        for one in plan:
            template = self.templates[one.group].node
            allowed, _ = self.quotas.allowed(one.group, template, one.delta)
            one.new = one.current + allowed
            self.quotas.take(one.group, template, allowed)
        return [one for one in plan if one.delta != 0]

    # ── up to the minimum ──

    def fill(self) -> UpStatus:
        plan = [one for one in map(self.up_to_min, self.groups) if one is not None]
        if not plan:
            self.status.result = "ScaleUpNotNeeded"
            return self.status
        if self.execute(plan):
            self.status.result = "ScaleUpSuccessful"
            self.status.infos = plan
            self.status.considered = [one.id for one in self.groups]
        return self.status

    def up_to_min(self, group: Group) -> Resize | None:
        """Return the increase to the minimum. The limit of the whole cluster is held against the group's own size."""
        if not group.exists or group.target >= group.min or self.not_ready(group):
            return None
        if group.id not in self.templates:
            return None
        template = self.templates[group.id].node
        count, _ = self.quotas.allowed(group.id, template, group.min - group.target)
        if count < 1:
            return None
        try:
            count = self.capped(count, group.target)
        except _Stopped:
            return None
        return Resize(group.id, group.target, group.target + count, group.max)

    # ── the cloud ──

    def execute(self, plan: list[Resize]) -> bool:
        """Increase the groups, one after another up to the first that the cloud refuses, or all side by side.

        Return whether all succeeded.
        """
        errors: list[str] = []
        for one in plan:
            error = self.increase(one)
            if error:
                errors.append(error)
                self.status.failed.append(one.group)
                if not self.world.flags.on("parallel-scale-up"):
                    break
        if errors:
            self.status.error = "cloudProviderError", _combined(errors)
            self.status.result = "ScaleUpError"
            return False
        self.registry.recalculate()
        return True

    def increase(self, one: Resize) -> str:
        """Increase a group; return what went wrong."""
        call: Json = {"group": one.group, "delta": one.delta}
        sizes = f"{one.new} instead of {one.current} (max: {one.max})"
        self.say("ScaledUpGroup", f"Scale-up: setting group {one.group} size to {sizes}")
        try:
            self.world.increase(one.group, one.delta)
        except CloudRefusal as refusal:
            error = f"failed to increase node group size: {refusal}"
            failure = f"Scale-up failed for group {one.group}: {refusal}"
            self.say("FailedToScaleUpGroup", failure, warning=True)
            self.registry.register_failed_scale_up(one.group, "cloudProviderError", error, self.now)
            self.status.refused_increases.append({**call, "error": str(refusal)})
            return error
        self.status.increases.append(call)
        self.registry.register_scale_up(one.group, one.delta, self.now)
        self.say("ScaledUpGroup", f"Scale-up: group {one.group} size set to {sizes}")
        return ""

    def say(self, reason: str, message: str, *, warning: bool = False) -> None:
        events.on_status(self.world, reason, message, warning=warning)

    def not_grown(self, plan: list[Resize]) -> set[str]:
        """Return the groups that failed; one after another, those behind the first that failed were not tried."""
        if self.world.flags.on("parallel-scale-up"):
            return set(self.status.failed)
        tried = [one.group for one in plan]
        return set(tried[tried.index(self.status.failed[0]) :])


def _combined(errors: list[str]) -> str:
    """Return one text for all errors. Upstream repeats equal ones, as each wraps another answer of the cloud."""
    if len(set(errors)) == 1:
        return errors[0]
    first, *others = sorted(errors)
    return f"{first} ...and other errors: [{', '.join(map(dumps, others))}]"
