"""The Cloud port over machines that exist only here and become Nodes of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from kubetide.embedded.agenda import Agenda
from kubetide.embedded.cloud.catalogue import CATALOGUE, InstanceType
from kubetide.embedded.cloud.faults import NO_FAULTS, Call, CloudFaults
from kubetide.embedded.cloud.groups import GPU_LABEL, GroupSpec, provider_id
from kubetide.embedded.cloud.joining import create_node, make_ready
from kubetide.embedded.cloud.machines import Do, Group, GroupCounts, Machine
from kubetide.embedded.cloud.made import candidates_of, made_group
from kubetide.embedded.cloud.persisted import json_of, made_groups, put_back
from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupCandidate, InstanceError, NewGroup, NodeGroup
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, CloudError, NotFound
from kubetide.units.seeds import name_suffix, unit_interval
from kubetide.units.time import Instant, after, seconds

_RETRY = seconds(1)
_NS_PER_HOUR = 3_600_000_000_000


class _Step(NamedTuple):
    machine: Machine
    do: Do


class EmbeddedCloud(Cloud):
    """Node groups whose machines boot, join as Nodes through the Cluster port, and end."""

    name = "embedded"
    gpu_label = GPU_LABEL

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        *,
        seed: int,
        groups: Sequence[GroupSpec],
        creatable: Sequence[GroupSpec] = (),
        catalogue: Mapping[str, InstanceType] = CATALOGUE,
        faults: CloudFaults = NO_FAULTS,
        keep: Callable[[Json], None] | None = None,
        stored: Json | None = None,
    ) -> None:
        """Nothing happens before ``start``.

        Args:
            cluster: Where nodes are registered.
            clock: The time.
            seed: What everything random is drawn from.
            groups: The node groups.
            creatable: Groups that may be made while it runs, or others of the same machines.
            catalogue: The instance types.
            faults: What goes wrong.
            keep: Takes the machines, and what they do next, after each change.
            stored: What ``keep`` took last: this cloud goes on from there.

        Raises: ValueError for two groups of one name, or for stored machines that fit no group.
        """
        self._cluster = cluster
        self._clock = clock
        self._seed = seed
        self._faults = faults
        self._catalogue = catalogue
        self._creatable = tuple(sorted(creatable, key=lambda group: group.name))
        self._candidates = candidates_of(self._creatable, catalogue)
        self._groups: dict[str, Group] = {}
        for spec in sorted(groups, key=lambda group: group.name):
            if spec.name in self._groups:
                raise ValueError(f"node group {spec.name} stands twice; give each group its own name")
            self._groups[spec.name] = Group(spec, catalogue.get(spec.instance_type))
        self._agenda: Agenda[_Step] = Agenda(clock)
        self._keep = keep
        self._goes_on = stored is not None
        self._view: tuple[NodeGroup, ...] | None = None
        self._handlers: list[Callable[[Sequence[NodeGroup]], None]] = []
        self._price: float | None = None
        self._sizes: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        self._spent = 0.0
        self._spent_until = clock.now()
        if stored is not None:
            for new in made_groups(stored):
                self._groups[new.id] = made_group(new, catalogue, self._creatable)
            self._groups = dict(sorted(self._groups.items()))
            self._spent = put_back(stored, self._groups)
            for group in self._groups.values():
                for machine in group.machines.values():
                    if machine.todo is not None:
                        self._agenda.put(machine.todo[1], _Step(machine, machine.todo[0]))

    async def start(self) -> None:
        """Make the machines that exist from the beginning; their nodes are Ready when this returns.

        A cloud that goes on has its machines.
        """
        if self._goes_on:
            return
        now = self._clock.now()
        for group in self._groups.values():
            if group.spec.first_size and group.kind is None:
                group.check_increase(group.spec.first_size)
            for _ in range(group.spec.first_size):
                machine = self._add(group, group.zones_by_capacity()[0])
                machine.state = "Running"
                await create_node(self._cluster, group, machine, ready=True, now=now)
                machine.node = True
        self._note()

    async def run(self) -> None:
        """Let machines boot, join and end, until cancelled."""
        await self._agenda.run(self._do)

    # ── the port ────────────────────────────────────────────────────────────────────────────────

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return all node groups ordered by id; the same tuple while nothing has changed."""
        self._check_call("refresh", "")
        return self._groups_now()

    def _groups_now(self) -> tuple[NodeGroup, ...]:
        if self._view is None:
            self._view = tuple(group.view() for group in self._groups.values())
        return self._view

    def on_change(self, handler: Callable[[Sequence[NodeGroup]], None]) -> None:
        """Call ``handler`` with all node groups whenever machines or groups have changed. Must not raise or block."""
        self._handlers.append(handler)

    @property
    def creates_groups(self) -> bool:
        """Groups can be created."""
        return True

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that can be created, ordered by id."""
        return self._candidates

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Order ``delta`` machines. Raises CloudError."""
        group = self._group(group_id)
        self._check_call("increase_size", group_id)
        self._check_increase(group, delta)
        for _ in range(delta):
            self._order(group)
        self._note()

    async def atomic_increase_size(self, group_id: str, delta: int) -> None:
        """Order ``delta`` machines if all of them are in stock, else none. Raises CloudError."""
        group = self._group(group_id)
        self._check_call("increase_size", group_id)
        self._check_increase(group, delta)
        now = self._clock.now()
        orders = range(group.ordered, group.ordered + delta)
        if not all(self._zones_in_stock(group, order, now) for order in orders):
            short = group.no_stock()
            raise CloudError(
                f"node group {group_id}: not all of {delta} machines can be had: {short.error_message}",
                error_code=short.error_code,
                cause=short.cause,
            )
        for _ in range(delta):
            self._order(group)
        self._note()

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Make a group without machines. Raises CloudError."""
        self._check_call("create_group", group.id)
        if group.id in self._groups:
            raise CloudError(f"node group {group.id} exists; give the new one another name")
        made = made_group(group, self._catalogue, self._creatable)
        self._groups = dict(sorted({**self._groups, group.id: made}.items()))
        self._view = None
        self._note()
        return self._groups[group.id].view()

    async def delete_group(self, group_id: str) -> None:
        """Delete a group that ``create_group`` made and that has no machines. Raises CloudError."""
        group = self._group(group_id)
        self._check_call("delete_group", group_id)
        group.check_deletable()
        del self._groups[group_id]
        self._view = None
        self._note()

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Return up machines that have not booted yet. Raises CloudError."""
        group = self._group(group_id)
        self._check_call("decrease_target_size", group_id)
        for machine in group.to_withdraw(delta):
            self._remove(group, machine)
        self._note()

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete machines; one that never booted is gone at once. Raises CloudError."""
        group = self._group(group_id)
        self._check_call("delete_nodes", group_id)
        now = self._clock.now()
        for machine in group.to_delete(provider_ids, force=force):
            if machine.state == "Creating":
                self._remove(group, machine)
                continue
            machine.state = "Deleting"
            self._changed(group)
            time = group.spec.shutdown.draw(self._seed, "shutdown", machine.name)
            self._plan(machine, "end", after(now, time))
        self._note()

    # ── what goes wrong ─────────────────────────────────────────────────────────────────────────

    def use_faults(self, faults: CloudFaults) -> None:
        """Set the faults from now on; machines that failed stay as they are."""
        self._faults = faults

    # ── accounts ────────────────────────────────────────────────────────────────────────────────

    def cost_per_hour(self) -> float:
        """Price of all machines together; one is paid from its order to its end."""
        if self._price is None:
            self._price = sum(
                group.price * sum(machine.is_billed for machine in group.machines.values())
                for group in self._groups.values()
            )
            self._sizes = {name: group.paid_size for name, group in self._groups.items()}
        return self._price

    def spent(self) -> float:
        """Money spent since the cloud was made."""
        self._settle()
        return self._spent

    def largest_sizes(self) -> dict[str, int]:
        """Most machines that each group had at a time since ``forget_sizes``: not those being deleted, nor what could not be had."""
        self._settle()
        return dict(self._largest)

    def forget_sizes(self) -> None:
        """Start ``largest_sizes`` from the sizes of now."""
        self._settle()
        self._largest = {}

    def counts(self) -> dict[str, GroupCounts]:
        """Machines by group and state."""
        return {name: group.counts() for name, group in self._groups.items()}

    # ── machines ────────────────────────────────────────────────────────────────────────────────

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            raise CloudError(f"no node group {group_id}; there are {', '.join(self._groups) or 'none'}")
        return group

    def _check_call(self, call: Call, group: str) -> None:
        now = self._clock.now()
        for failure in self._faults.call_failures:
            if (
                call in failure.calls
                and failure.window.covers(now, group=group)
                and failure.window.hits(self._seed, "call", call, group, now)
            ):
                raise failure.error(call, group)

    def _plan(self, machine: Machine, do: Do, due: Instant) -> None:
        machine.todo = do, due
        self._agenda.put(due, _Step(machine, do))

    def _note(self) -> None:
        """Show the groups, and have the machines stored, as they are now. Raises CloudError when that fails."""
        for handler in self._handlers:
            handler(self._groups_now())
        if self._keep is None:
            return
        try:
            self._keep(json_of(self._groups, self._spent))
        except ApiError as error:
            raise CloudError(f"the machines cannot be stored: {error}") from error

    def _settle(self) -> None:
        """Count the money up to now; called before every change of what is billed."""
        now = self._clock.now()
        if now == self._spent_until:
            return
        self._spent += self.cost_per_hour() * (now - self._spent_until) / _NS_PER_HOUR
        self._spent_until = now
        for name, size in self._sizes.items():
            if size > self._largest.get(name, 0):
                self._largest[name] = size

    def _changed(self, group: Group) -> None:
        group.changed()
        self._view = self._price = None

    def _add(self, group: Group, zone: str, error: InstanceError | None = None) -> Machine:
        self._settle()
        while True:
            group.ordered += 1
            name = f"{group.spec.name}-{name_suffix(self._seed, 'machine', group.spec.name, group.ordered)}"
            if all(provider_id(each, name) not in group.machines for each in group.spec.zones):
                break
        machine = Machine(name=name, group=group.spec.name, zone=zone, error=error)
        group.machines[machine.provider_id] = machine
        self._changed(group)
        return machine

    def _check_increase(self, group: Group, delta: int) -> None:
        group.check_increase(delta)
        quota = self._faults.quota
        total = sum(each.target for each in self._groups.values())
        if quota is not None and total + delta > quota:
            raise CloudError(
                f"node group {group.spec.name}: {delta} more machines would pass the quota of {quota}, {total} exist",
                error_code="QuotaExceeded",
                cause="Quota",
            )

    def _order(self, group: Group) -> None:
        now = self._clock.now()
        in_stock = self._zones_in_stock(group, group.ordered, now)
        if not in_stock:
            self._add(group, group.zones_by_capacity()[0], group.no_stock())
            return
        machine = self._add(group, in_stock[0])
        machine.joins = self._joins(group, machine, now)
        boot = group.spec.boot.draw(self._seed, "boot", machine.name)
        self._plan(machine, "register", after(now, boot))

    def _zones_in_stock(self, group: Group, order: int, now: Instant) -> list[str]:
        return [zone for zone in group.zones_by_capacity() if not self._is_out(group, zone, order, now)]

    def _is_out(self, group: Group, zone: str, order: int, now: Instant) -> bool:
        return any(
            window.covers(now, group=group.spec.name, zone=zone)
            and window.hits(self._seed, "stock", group.spec.name, zone, order)
            for window in self._faults.stock_outs
        )

    def _joins(self, group: Group, machine: Machine, now: Instant) -> bool:
        if unit_interval(self._seed, "join", machine.name) < group.spec.join_failure:
            return False
        return not any(
            window.covers(now, group=group.spec.name, zone=machine.zone)
            and window.hits(self._seed, "boot failure", machine.name)
            for window in self._faults.boot_failures
        )

    def _remove(self, group: Group, machine: Machine) -> None:
        self._settle()
        del group.machines[machine.provider_id]
        self._changed(group)

    # ── what becomes due ────────────────────────────────────────────────────────────────────────

    async def _do(self, step: _Step) -> None:
        machine, group = step.machine, self._groups.get(step.machine.group)
        if group is None or group.machines.get(machine.provider_id) is not machine:
            return
        todo = machine.todo
        try:
            # Somebody may have deleted the node: the machine stays, as in a cloud.
            with suppress(NotFound):
                if step.do == "end":
                    await self._end(group, machine)
                elif machine.state != "Deleting":
                    await (self._register if step.do == "register" else self._make_ready)(group, machine)
            if machine.todo is todo and (todo is None or todo[0] == step.do):
                machine.todo = None
            self._note()
        except (ApiError, CloudError):
            self._agenda.put(after(self._clock.now(), _RETRY), step)

    async def _register(self, group: Group, machine: Machine) -> None:
        now = self._clock.now()
        if machine.state == "Creating":
            machine.state = "Running"
            self._changed(group)
        if not machine.joins:
            return
        await create_node(self._cluster, group, machine, ready=False, now=now)
        machine.node = True
        time = group.spec.ready.draw(self._seed, "ready", machine.name)
        self._plan(machine, "make ready", after(now, time))

    async def _make_ready(self, group: Group, machine: Machine) -> None:  # noqa: ARG002  one shape for all steps
        await make_ready(self._cluster, machine.name, self._clock.now())

    async def _end(self, group: Group, machine: Machine) -> None:
        if machine.node:
            with suppress(NotFound):
                await self._cluster.delete(NODES, machine.name)
        self._remove(group, machine)
