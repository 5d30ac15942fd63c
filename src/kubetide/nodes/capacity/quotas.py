"""Limits for the nodes with certain labels (CapacityQuotas), and their present use.

Source: Cluster Autoscaler, resourcequotas and apis/capacityquota v1beta1 (August 2026).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from msgspec.structs import replace

from kubetide.nodes.decision import Write
from kubetide.nodes.facts.nodes import is_virtual_kubelet
from kubetide.nodes.facts.statuses import status_write
from kubetide.nodes.state import State
from kubetide.objects.base import Quantities
from kubetide.objects.capacity import (
    CapacityQuota,
    CapacityQuotaStatus,
    ResourceAmounts,
    StatusCondition,
    condition_of,
)
from kubetide.objects.kinds import CAPACITY_QUOTAS
from kubetide.objects.node import Node
from kubetide.units.quantity import Quantity, QuantityError, bytes_to_text
from kubetide.units.selectors import EVERYTHING, Selector, SelectorError
from kubetide.units.time import Instant, format_rfc3339

NODES: Final = "nodes"
_RECONCILED: Final = "Reconciled"
_VALID: Final = "cluster-autoscaler.kubernetes.io/valid"
_VALIDATED: Final = "ValidationSucceeded"
_NOT_VALIDATED: Final = "ValidationFailed"
_IS_VALID: Final = "CapacityQuota is valid"
_IS_RECONCILED: Final = "CapacityQuota successfully reconciled"
_NOT_VALID: Final = "Validation failed"


class InvalidQuota(ValueError):
    """A quota has a value that cannot be enforced; the message names the field and the fix."""


@dataclass(frozen=True)
class Quota:
    """One quota as enforced: cores, bytes and counts over all nodes that its selector matches."""

    name: str
    selector: Selector
    limits: dict[str, int]

    @property
    def id(self) -> str:
        """The name of the quota in reasons and events, as upstream has it: kind and name."""
        return f"CapacityQuota/{self.name}"

    @cached_property
    def resources(self) -> tuple[str, ...]:
        """The limited resources, in order of name."""
        return tuple(sorted(self.limits))

    def key(self, resource: str) -> str:
        """Return the key of a limit of this quota; it differs from all keys of cluster-wide limits."""
        return f"{self.name}/{resource}"

    def holds_for(self, node: Node) -> bool:
        """Return whether the node counts towards the quota."""
        return not is_virtual_kubelet(node) and self.selector.matches(node.metadata.labels)

    def used_by(self, node: Node, amounts: Callable[[str], int]) -> dict[str, int]:
        """Return the node's use of each limited resource; ``amounts`` returns the node's amount of one."""
        if not self.holds_for(node):
            return dict.fromkeys(self.resources, 0)
        return {name: 1 if name == NODES else amounts(name) for name in self.resources}


def quota_of(item: CapacityQuota) -> Quota:
    """Return the quota as enforced. Raises InvalidQuota."""
    selector = item.spec.selector
    try:
        chosen = EVERYTHING if selector is None else Selector.from_object(selector)
    except SelectorError as error:
        raise InvalidQuota(f"spec.selector: {error}") from error
    limits = {}
    for name, text in sorted((item.spec.limits.resources or {}).items()):
        try:
            amount = Quantity.parse(text)
        except QuantityError as error:
            raise InvalidQuota(f"spec.limits.resources[{name}]: {error}") from error
        if amount.sign() < 0 or Quantity.parse(amount.value()) != amount:
            raise InvalidQuota(f"spec.limits.resources[{name}]: {text}: give a whole number, 0 or more")
        limits[name] = amount.value()
    if not limits:
        raise InvalidQuota("spec.limits.resources: it limits nothing; name a resource, such as nodes: 10")
    return Quota(item.metadata.name, chosen, limits)


def quotas_of(state: State) -> list[Quota]:
    """Return the enforced quotas in order of name; invalid ones are left out."""
    found = []
    for item in state.capacity.quotas if state.settings.capacity_quotas_enabled else ():
        try:
            found.append(quota_of(item))
        except InvalidQuota:
            continue
    return found


def update_quotas(state: State, amounts: Callable[[Node, str], int], now: Instant) -> tuple[Write, ...]:
    """Update the statuses of all quotas in the state; return the writes."""
    writes: list[Write] = []
    quotas = state.capacity.quotas if state.settings.capacity_quotas_enabled else ()
    nodes = [state.nodes[name] for name in sorted(state.nodes)] if quotas else []
    for item in quotas:
        try:
            quota = quota_of(item)
            updated = _reconciled(item, _used(quota, nodes, amounts), "", now)
        except InvalidQuota as error:
            updated = _reconciled(item, None, str(error), now)
        if updated.status != item.status:
            state.capacity.put(updated, CAPACITY_QUOTAS)
            writes.append(status_write(CAPACITY_QUOTAS, updated))
    return tuple(writes)


def _used(quota: Quota, nodes: Iterable[Node], amounts: Callable[[Node, str], int]) -> Quantities:
    used = dict.fromkeys(quota.resources, 0)
    for node in nodes:
        for name, amount in quota.used_by(node, lambda name, node=node: amounts(node, name)).items():  # type: ignore[misc]
            used[name] += amount
    return {name: quota_text(name, amount) for name, amount in used.items()}


def quota_text(resource: str, amount: int) -> str:
    """Return an amount of a quota (cores, bytes or a number) as its object has it."""
    return bytes_to_text(amount) if resource == "memory" else str(amount)


def _reconciled(item: CapacityQuota, used: Quantities | None, fault: str, now: Instant) -> CapacityQuota:
    if fault:
        valid = _condition(item, _VALID, _NOT_VALIDATED, fault, now, holds=False)
        reconciled = _condition(item, _RECONCILED, "ReconciliationFailed", _NOT_VALID, now, holds=False)
    else:
        valid = _condition(item, _VALID, _VALIDATED, _IS_VALID, now, holds=True)
        reconciled = _condition(item, _RECONCILED, "ReconciliationSucceeded", _IS_RECONCILED, now, holds=True)
    others = tuple(one for one in item.status.conditions or () if one.type not in {_VALID, _RECONCILED})
    status = CapacityQuotaStatus(
        used=None if used is None else ResourceAmounts(used),
        conditions=(*others, valid, reconciled),
        observed_generation=item.metadata.generation,
    )
    return replace(item, status=status)


def _condition(
    item: CapacityQuota, kind: str, reason: str, message: str, now: Instant, *, holds: bool
) -> StatusCondition:
    before = condition_of(item.status.conditions, kind)
    status = "True" if holds else "False"
    since = before.last_transition_time if before is not None and before.status == status else None
    return StatusCondition(
        type=kind,
        status=status,
        observed_generation=item.metadata.generation,
        last_transition_time=since or format_rfc3339(now),
        reason=reason,
        message=message,
    )
