"""Reports objects that cannot be read; the loop goes on without them."""

from __future__ import annotations

from kubetide.acting import EventWriter, UnreadObjects
from kubetide.nodes.capacity.provisioning.parameters import unread_parameters
from kubetide.nodes.facts.node_capacity import absurd_amounts, unread_capacity
from kubetide.nodes.records.delta import Delta
from kubetide.nodes.state import State
from kubetide.objects.kinds import NODES, PDBS, PROVISIONING_REQUESTS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.snapshot.unread import unread_amounts
from kubetide.units.selectors import Selector, SelectorError


class NotUnderstood:
    """Checks changed objects. Unreadable pod requests are reported with the verdict on the pod."""

    def __init__(self, events: EventWriter) -> None:
        self.objects = UnreadObjects(events)
        self._ledger: Ledger | None = None

    async def look(self, delta: Delta, state: State, *, anew: bool = False) -> None:
        """Check the objects of an applied delta, and report what cannot be read.

        ``anew``: the delta is of all objects, and does not say which of those known before are gone.
        """
        if anew:
            self.objects.keep(NODES, (("", name) for name in state.nodes))
            self.objects.keep(PDBS, state.pdbs)
        for node in delta.nodes:
            kind, meta, unread = unread_amounts(node)
            self.objects.note(
                kind, meta, "; ".join(filter(None, (unread, unread_capacity(node), _absurd(node))))
            )
        for name in delta.gone.nodes:
            self.objects.note(NODES, ObjectMeta(name=name), "")
        for budget in delta.pdbs:
            self.objects.note(PDBS, budget.metadata, _problem(budget))
        for namespace, name in delta.gone.pdbs:
            self.objects.note(PDBS, ObjectMeta(namespace=namespace, name=name), "")
        if delta.capacity is not None or delta.gone.capacity:
            self.objects.keep(PROVISIONING_REQUESTS, state.capacity.of(PROVISIONING_REQUESTS))
        for request in () if delta.capacity is None else delta.capacity.provisioning_requests:
            problem = unread_parameters(request, state.settings)
            self.objects.note(PROVISIONING_REQUESTS, request.metadata, problem)
        if state.snapshot.devices is not self._ledger:
            self._ledger = state.snapshot.devices
            self.objects.note_devices(self._ledger)
        await self.objects.tell()


def _absurd(node: Node) -> str:
    said = "; ".join(
        f"status.capacity[{name}]: {(node.status.capacity or {})[name]} is more than any machine has"
        for name in absurd_amounts(node)
    )
    return (
        f"{said}; it counts as none against cluster-wide limits until its kubelet reports less"
        if said
        else ""
    )


def _problem(budget: PodDisruptionBudget) -> str:
    try:
        Selector.from_object(budget.spec.selector)
    except SelectorError as error:
        return f"spec.selector: {error}; until it is fixed the budget holds for all pods of its namespace"
    return ""
