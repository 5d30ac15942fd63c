"""The machines of one node group: a small state machine without I/O.

A machine is ordered (``Creating``), runs (``Running``) and is deleted (``Deleting``, then gone).
One that cannot be had stays ``Creating`` with an error until it is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from kubetide.embedded.cloud.catalogue import InstanceType
from kubetide.embedded.cloud.groups import GroupSpec, provider_id, template_of
from kubetide.ports.cloud import Instance, InstanceError, InstanceState, NewGroup, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant

Do = Literal["register", "make ready", "end"]


@dataclass(eq=False)
class Machine:
    """One machine; ``joins`` says whether it will register a Node, ``node`` whether it has.

    ``todo`` is what it does next, and when.
    """

    name: str
    group: str
    zone: str
    state: InstanceState = "Creating"
    error: InstanceError | None = None
    joins: bool = True
    node: bool = False
    todo: tuple[Do, Instant] | None = None

    @property
    def provider_id(self) -> str:
        """Its id in the cloud."""
        return provider_id(self.zone, self.name)

    @property
    def is_billed(self) -> bool:
        """Whether it costs money: from the order on, unless it could not be had, until it is gone."""
        return self.error is None


@dataclass(frozen=True)
class GroupCounts:
    """How many machines of a group are in which state; ``failed`` are those with an error."""

    creating: int
    running: int
    deleting: int
    failed: int


@dataclass(eq=False)
class Group:
    """A node group and its machines by provider id, in the order they were ordered."""

    spec: GroupSpec
    kind: InstanceType | None
    """None when the catalogue does not know the type: the group then has no template and cannot grow."""
    machines: dict[str, Machine] = field(default_factory=dict)
    ordered: int = 0
    made: NewGroup | None = None
    """What it was made of while the cloud ran; None for one that was there from the beginning."""
    _view: NodeGroup | None = None

    def __post_init__(self) -> None:
        self._template = None if self.kind is None else template_of(self.spec, self.kind)

    @property
    def target(self) -> int:
        """The target size: every machine that is not being deleted."""
        return sum(machine.state != "Deleting" for machine in self.machines.values())

    @property
    def paid_size(self) -> int:
        """The machines of the target size that cost money."""
        return sum(machine.state != "Deleting" and machine.is_billed for machine in self.machines.values())

    @property
    def price(self) -> float:
        """Price of one machine an hour."""
        if self.spec.price_per_hour is not None:
            return self.spec.price_per_hour
        return 0.0 if self.kind is None else self.kind.price_per_hour

    def changed(self) -> None:
        """Say that a machine has changed."""
        self._view = None

    def view(self) -> NodeGroup:
        """The group as the port shows it; the same object until something changes."""
        if self._view is None:
            spec = self.spec
            self._view = NodeGroup(
                id=spec.name,
                min_size=spec.min_size,
                max_size=spec.max_size,
                target_size=self.target,
                instances=tuple(
                    Instance(provider_id=key, state=machine.state, error=machine.error)
                    for key, machine in self.machines.items()
                ),
                template=self._template,
                template_error=""
                if self._template is not None
                else f"node group {spec.name} uses the unknown instance type {spec.instance_type}",
                options=spec.options,
                price_per_hour=self.price,
                debug=f"{spec.name} ({spec.min_size}:{spec.max_size})",
                autoprovisioned=self.made is not None,
            )
        return self._view

    def counts(self) -> GroupCounts:
        """Return how many machines are in which state."""
        states = [machine.state for machine in self.machines.values() if machine.error is None]
        return GroupCounts(
            creating=states.count("Creating"),
            running=states.count("Running"),
            deleting=states.count("Deleting"),
            failed=len(self.machines) - len(states),
        )

    def no_stock(self) -> InstanceError:
        """Return why a machine that was ordered cannot be had."""
        zones = ", ".join(sorted(self.spec.zones))
        return InstanceError(
            error_class="OutOfResource",
            error_code="InsufficientInstanceCapacity",
            error_message=f"no capacity for instance type {self.spec.instance_type} in {zones}",
            cause="OutOfCapacity",
        )

    def check_deletable(self) -> None:
        """Raise CloudError for a group that was there from the beginning, or that has machines."""
        if self.made is None:
            raise CloudError(f"node group {self.spec.name}: was not made by this program, so it stays")
        if self.machines:
            raise CloudError(
                f"node group {self.spec.name}: has {len(self.machines)} machines; delete them first"
            )

    def zones_by_capacity(self) -> list[str]:
        """Its zones, those with the fewest machines first."""
        used = dict.fromkeys(self.spec.zones, 0)
        for machine in self.machines.values():
            used[machine.zone] += machine.state != "Deleting"
        return sorted(used, key=used.__getitem__)

    def check_increase(self, delta: int) -> None:
        """Raise CloudError when the group cannot grow by ``delta``."""
        spec = self.spec
        if delta <= 0:
            raise CloudError(f"node group {spec.name}: size increase must be positive, not {delta}")
        if self.kind is None:
            raise CloudError(f"node group {spec.name} uses the unknown instance type {spec.instance_type}")
        if self.target + delta > spec.max_size:
            raise CloudError(
                f"node group {spec.name}: size increase too large: desired {self.target + delta}, max {spec.max_size}"
            )

    def to_withdraw(self, delta: int) -> list[Machine]:
        """The machines that do not exist yet to give up, failed ones first, then the newest. Raises CloudError."""
        spec = self.spec
        if delta <= 0:
            raise CloudError(f"node group {spec.name}: size decrease must be positive, not {delta}")
        open_orders = [machine for machine in reversed(self.machines.values()) if machine.state == "Creating"]
        if delta > len(open_orders):
            raise CloudError(
                f"node group {spec.name}: attempt to delete existing nodes: target {self.target}, decrease {delta}, "
                f"not created yet {len(open_orders)}"
            )
        if self.target - delta < spec.min_size:
            raise CloudError(
                f"node group {spec.name}: min size {spec.min_size} reached, target {self.target} cannot fall by {delta}"
            )
        return sorted(open_orders, key=lambda machine: machine.error is None)[:delta]

    def to_delete(self, provider_ids: Sequence[str], *, force: bool) -> list[Machine]:
        """The machines of these ids that are not being deleted yet. Raises CloudError."""
        spec = self.spec
        found: dict[str, Machine] = {}
        for key in provider_ids:
            machine = self.machines.get(key)
            if machine is None:
                raise CloudError(f"node group {spec.name}: {key} does not belong to it")
            if machine.state != "Deleting":
                found[key] = machine
        if found and not force and self.target - len(found) < spec.min_size:
            raise CloudError(
                f"node group {spec.name}: min size {spec.min_size} reached, {len(found)} of {self.target} nodes will "
                "not be deleted"
            )
        return list(found.values())
