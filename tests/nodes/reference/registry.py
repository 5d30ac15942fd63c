"""What upstream knows of groups from loop to loop: readiness, open increases, backoff, sizes that are wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference import events
from tests.nodes.reference.node_marks import TO_BE_DELETED, has_taint, is_ready
from tests.nodes.reference.seen_nodes import lacks_resources
from tests.nodes.reference.world import CloudRefusal, Group, Json, Machine, World

from kubetide.units.time import Duration, format_duration, parse_duration, parse_rfc3339

CLASSES = {"OutOfResources": "OutOfResource", "Other": "Other"}
"""Upstream's names of a story's error classes."""


@dataclass
class Readiness:
    """Names of nodes by what they are. The last two are machines without a Node, by provider id."""

    registered: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    resource_unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    suspended: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


@dataclass
class Request:
    """An increase that is under way."""

    increase: int
    time: int
    expected: int


@dataclass
class Backoff:
    duration: Duration
    until: int
    last_failure: int
    code: str
    message: str


@dataclass
class WrongSize:
    registered: int
    target: int
    since: int


def is_suspended(node: Json) -> bool:
    conditions = (node.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Suspended" and one["status"] == "True" for one in conditions)


@dataclass
class Registry:
    """Upstream's cluster state registry; `refresh` is its update at the start of a loop."""

    world: World
    requests: dict[str, Request] = field(default_factory=dict)
    backoffs: dict[str, Backoff] = field(default_factory=dict)
    unregistered_since: dict[str, int] = field(default_factory=dict)
    readiness: dict[str, Readiness] = field(default_factory=dict)
    total: Readiness = field(default_factory=Readiness)
    targets: dict[str, int] = field(default_factory=dict)
    least: dict[str, int] = field(default_factory=dict)
    wrong: dict[str, WrongSize] = field(default_factory=dict)
    machines: dict[str, list[Machine]] = field(default_factory=dict)
    templates: set[str] = field(default_factory=set)
    node_count: int = 0
    decreases: list[Json] = field(default_factory=list)

    def option(self, group: Group, name: str, flag: str) -> Duration:
        """Return a time of a group, its own or by the flag."""
        own = group.options.get(name)
        return parse_duration(own) if own is not None else self.world.flags.duration(flag)

    def provision_time(self, group: Group) -> Duration:
        return self.option(group, "maxNodeProvisionTime", "max-node-provision-time")

    # ── the update of a loop ──

    def refresh(self, nodes: list[Json], templates: set[str]) -> None:
        """Read the cluster and the cloud anew. `nodes` are all Nodes, `templates` the groups that have one."""
        now = self.world.now
        self.templates = templates
        self.node_count = len(nodes)
        self.targets = {name: group.target for name, group in sorted(self.world.groups.items())}
        before = self.machines
        self.machines = {
            name: [group.machines[one] for one in sorted(group.machines)]
            for name, group in sorted(self.world.groups.items())
        }
        known = {node["spec"].get("providerID", "") for node in nodes}
        missing = [
            one.id
            for machines in self.machines.values()
            for one in machines
            if one.id not in known and one.state != "deleting" and not one.error_class
        ]
        self.unregistered_since = {one: self.unregistered_since.get(one, now) for one in missing}
        self._measure(nodes, now)
        self._expect()
        self._close_requests(now)
        for name, machines in self.machines.items():
            self._see_failures(name, machines, before.get(name, []), now)
        self._expect()
        self._see_wrong_sizes(now)

    def _measure(self, nodes: list[Json], now: int) -> None:
        self.readiness, self.total = {}, Readiness()
        for node in nodes:
            group = self.world.group_of_node(node)
            # For a node of no group upstream takes the time of the one that it looked at before.
            startup = self.world.flags.duration("max-node-startup-time")
            if group is not None:
                startup = self.option(group, "maxNodeStartupTime", "max-node-startup-time")
            views = [self.total]
            if group is not None:
                views.append(self.readiness.setdefault(group.id, Readiness()))
            created = parse_rfc3339(node["metadata"]["creationTimestamp"])
            for view in views:
                name = node["metadata"]["name"]
                view.registered.append(name)
                if self._is_deleted(node):
                    view.deleted.append(name)
                elif is_suspended(node):
                    view.suspended.append(name)
                elif is_ready(node):
                    view.ready.append(name)
                elif created + startup > now:
                    view.not_started.append(name)
                else:
                    view.unready.append(name)
                    if lacks_resources(node):
                        view.resource_unready.append(name)
        for one, since in self.unregistered_since.items():
            group = self.world.groups[self.world.group_of[one]]
            for view in (self.total, self.readiness.setdefault(group.id, Readiness())):
                long = since + self.provision_time(group) < now
                (view.long_unregistered if long else view.unregistered).append(one)

    def _is_deleted(self, node: Json) -> bool:
        """Return whether the machine is gone; of a cloud that does not say so the taint does."""
        if self.world.has_instance_implemented:
            return not self.world.has_machine(node)
        return has_taint(node, TO_BE_DELETED)

    def _expect(self) -> None:
        """Set how few nodes each group may have: target less what never came less what is on its way."""
        none = Readiness()
        self.least = {
            name: target - len(self.readiness.get(name, none).long_unregistered)
            for name, target in self.targets.items()
        }
        for name, request in self.requests.items():
            self.least[name] = self.least.get(name, 0) - request.increase

    def _close_requests(self, now: int) -> None:
        reset = self.world.flags.duration("node-group-backoff-reset-timeout")
        self.backoffs = {name: one for name, one in self.backoffs.items() if one.last_failure + reset >= now}
        for name, request in sorted(self.requests.items()):
            # Upstream takes a machine that is overdue for one that came, so such a request ends well there.
            overdue = len(self.readiness.get(name, Readiness()).long_unregistered)
            if self.awaited(name) + overdue <= 0:
                del self.requests[name]
            elif request.expected < now:
                waited = format_duration(Duration(now - request.time))
                message = f"Nodes added to group {name} failed to register within {waited}"
                events.on_status(self.world, "ScaleUpTimedOut", message, warning=True)
                self.register_failed_scale_up(
                    name, "timeout", f"Scale-up timed out for node group {name} after {waited}", now
                )
                entry: Json = {"group": name, "delta": -request.increase}
                self.decreases.append(entry)
                try:
                    self.world.decrease(name, -request.increase)
                except CloudRefusal as error:
                    entry["error"] = str(error)
                    message = (
                        f"Failed to decrease target size for group {name} after scale-up timeout: {error}"
                    )
                    events.on_status(self.world, "FailedToRevertScaleUp", message, warning=True)
                del self.requests[name]

    def _see_failures(self, name: str, machines: list[Machine], before: list[Machine], now: int) -> None:
        seen = {one.id for one in before if is_failed(one)}
        by_code: dict[tuple[str, str], list[Machine]] = {}
        for one in filter(is_failed, machines):
            by_code.setdefault((CLASSES[one.error_class], one.error_code), []).append(one)
        for (error_class, code), failed in sorted(by_code.items()):  # upstream: in any order
            fresh = [one for one in failed if one.id not in seen]
            if fresh and self.is_scaling_up(name):
                messages = _joined({one.error_message for one in failed})
                shown = f"{error_class}.{code}; source errors: {messages}"
                message = f"Failed adding {len(fresh)} nodes to group {name} due to {shown}"
                events.on_status(self.world, "ScaleUpFailed", message, warning=True)
                self.register_scale_up(name, -len(fresh), now)
                self.register_failed_scale_up(name, code, messages, now)

    def _see_wrong_sizes(self, now: int) -> None:
        wrong = {}
        for name, target in self.targets.items():
            view = self.readiness.get(name)
            if view is None:
                continue
            registered = len(view.registered)
            coming = len(view.unregistered) + len(view.long_unregistered)
            if registered > target or registered < target - coming:
                old = self.wrong.get(name)
                same = old is not None and (old.registered, old.target) == (registered, target)
                wrong[name] = WrongSize(registered, target, old.since if same and old else now)
        self.wrong = wrong

    def recalculate(self) -> None:
        """Read target sizes again after a change of this loop's own."""
        self.targets = {name: group.target for name, group in sorted(self.world.groups.items())}
        self._expect()

    # ── questions ──

    def not_started(self, group: str) -> list[str]:
        return self.readiness.get(group, Readiness()).not_started

    def take_decreases(self) -> list[Json]:
        """Return how targets were lowered since the last call, because nodes did not come in time."""
        taken, self.decreases = self.decreases, []
        return taken

    def awaited(self, group: str) -> int:
        """How many nodes the target names that are neither here nor given up."""
        if group not in self.targets:
            return 0
        view = self.readiness.get(group, Readiness())
        here = len(view.ready) + len(view.unready) + len(view.suspended) + len(view.long_unregistered)
        return self.targets[group] - here

    def is_scaling_up(self, group: str) -> bool:
        return self.awaited(group) > 0 and group in self.requests

    def is_cluster_healthy(self) -> bool:
        return not self._too_many(len(self.total.unready), self.node_count)

    def is_group_healthy(self, group: str) -> bool:
        if group not in self.targets:
            return False
        view = self.readiness.get(group)
        if view is None:
            return self.targets[group] == 0 or (self.least[group] == 0 and self.targets[group] > 0)
        missing = max(0, self.least[group] - len(view.ready) - len(view.suspended))
        alive = len(view.ready) + len(view.unready) + len(view.not_started) + len(view.suspended)
        return not self._too_many(missing, alive)

    def _too_many(self, bad: int, of: int) -> bool:
        share = self.world.flags.number("max-total-unready-percentage") / 100
        return bad > self.world.flags.whole("ok-total-unready-count") and bad > share * of

    def backoff(self, group: str, now: int) -> tuple[str, str] | None:
        """Error code and message while the group is backed off. A group without a template never is."""
        one = self.backoffs.get(group)
        if one is None or group not in self.templates or one.until <= now:
            return None
        return one.code, one.message

    def is_safe_to_scale_up(self, group: str, now: int) -> bool:
        return self.is_group_healthy(group) and self.backoff(group, now) is None

    def upcoming_nodes(self) -> dict[str, int]:
        now = self.world.now
        return {
            name: self.awaited(name)
            for name in sorted(self.world.groups)
            if self.awaited(name) > 0 and name in self.requests and self.backoff(name, now) is None
        }

    # ── what others tell it ──

    def register_scale_up(self, group: str, delta: int, now: int) -> None:
        request = self.requests.get(group)
        expected = now + self.provision_time(self.world.groups[group])
        if request is None:
            if delta > 0:
                self.requests[group] = Request(delta, now, expected)
        elif request.increase + delta <= 0:
            del self.requests[group]
        else:
            request.increase += delta
            if delta > 0:
                request.time, request.expected = now, expected

    def register_failed_scale_up(self, group: str, code: str, message: str, now: int) -> None:
        if group not in self.templates:
            return
        flags, old = self.world.flags, self.backoffs.get(group)
        duration = flags.duration("initial-node-group-backoff-duration")
        if old is not None:
            duration = old.duration
            if old.until < now:
                duration = Duration(min(2 * duration, flags.duration("max-node-group-backoff-duration")))
        self.backoffs[group] = Backoff(duration, now + duration, now, code, message)


def _joined(messages: set[str]) -> str:
    """Return all messages; behind more than three of them upstream adds dots, though none is left out."""
    return ", ".join(sorted(messages)) + (", ..." if len(messages) > 3 else "")


def is_failed(machine: Machine) -> bool:
    return machine.state == "creating" and bool(machine.error_class)
