"""An open purchase on a fork: offers with the nodes bought of them, and the pods still pending."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.nodes.expander.least_cost.offers import Offer
from kubetide.nodes.expander.least_cost.solver import Meter
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.scale_up.choosing.options import group_of, similar_groups
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.objects.pod import Pod
from kubetide.scheduling import PodClass
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.units.time import Instant


class Buying:
    """One choice: offers with the nodes bought of them, and the pods still pending."""

    def __init__(
        self, state: State, tick: Tick, headroom: Headroom, most_nodes: int, now: Instant, meter: Meter
    ) -> None:
        self.state = state
        self.snapshot = state.snapshot
        self.tick = tick
        self.now = now
        self.left = dict(headroom.left)
        self._headroom = headroom
        self.most_nodes = most_nodes
        self.meter = meter
        self.made: dict[str, list[Pod]] = {}
        self._named = 0
        self._filled: list[tuple[Offer, list[list[Pod]]]] = []
        """Nodes that the fork does not have."""
        self.one_by_one = 0
        self.bound: float | None = None
        """No choice for the same pods costs less, where one plan over all offers served all of them."""
        self.offers = self._offers()
        self.waiting: dict[int, PodGroup] = {}
        self.accepted: dict[int, dict[str, None]] = {}
        known: dict[int, dict[str, None]] = {}
        for number, verdict in enumerate(tick.verdicts):
            accepted = known.get(id(verdict.accepted))
            if accepted is None:
                accepted = {one: None for one in verdict.accepted if one in self.offers}
                known[id(verdict.accepted)] = accepted
            if accepted:
                self.waiting[number] = verdict.pods
                self.accepted[number] = accepted

    def _offers(self) -> dict[str, Offer]:
        """Return the groups that are offered; similar ones of the same price that take the same pods are one offer.

        One that takes more, such as pods bound to its zone, is an offer of its own: else nobody would offer it for these.
        """
        tick = self.tick
        found: dict[str, Offer] = {}
        shared: dict[str, None] = {}
        for group_id in tick.views:
            group, template = group_of(self.state, tick, group_id), tick.templates[group_id]
            if group_id in shared or group_id in tick.skipped or template is None:
                continue
            assert group.price_per_hour is not None, "groups without a price are skipped"
            similar = tuple(
                one
                for one in similar_groups(self.state, tick, group)
                if self.state.groups[one].price_per_hour == group.price_per_hour
                and one not in shared
                and all((one in each.accepted) == (group_id in each.accepted) for each in tick.verdicts)
            )
            shared.update(dict.fromkeys((group_id, *similar)))
            sizes = [group, *(self.state.groups[one] for one in similar)]
            whole = is_zero_or_max(group)
            found[group_id] = Offer(
                group,
                template,
                similar,
                price=group.price_per_hour,
                growth=sum(max(0, one.max_size - one.target_size) for one in sizes),
                whole=whole,
                by_arithmetic=not whole and not template.keeps_others_away,
                uses=self._headroom.uses_of(template.node),
            )
        return found

    def has_inter_pod_rules(self, number: int, pod_class: PodClass) -> bool:
        return (
            self.snapshot.has_inter_pod_rules(pod_class)
            or bool(pod_class.ports or pod_class.claims or pod_class.disks)
            or pod_class.names_nodes
            or not any(self.offers[one].by_arithmetic for one in self.accepted[number])
        )

    def most_of(self, offer: Offer) -> int:
        most = min(offer.growth, self.most_nodes)
        for name, need in offer.uses.items():
            if need:
                most = min(most, max(0, self.left[name] // need))
        return 0 if offer.whole and most < offer.growth else most

    def add_node(self, offer: Offer) -> str:
        """Add a new node to the fork and return its name."""
        return self.add_nodes(offer, 1)[0]

    def add_nodes(self, offer: Offer, number: int) -> list[str]:
        """Add new nodes of one offer to the fork and return their names."""
        nodes: list[list[Pod]] = [[] for _ in range(number)]
        offer.nodes += nodes
        return self._into_fork(offer, nodes)

    def add_filled(self, offer: Offer, nodes: list[list[Pod]]) -> None:
        """Buy nodes with their pods, without the fork: it has them after ``catch_up``."""
        self.spend(offer, len(nodes))
        offer.nodes += nodes
        self._filled.append((offer, nodes))

    def catch_up(self) -> None:
        """Add the nodes of ``add_filled`` and their pods to the fork."""
        for offer, nodes in self._filled:
            for name, pods in zip(self._into_fork(offer, nodes), nodes, strict=True):
                for pod in pods:
                    self.snapshot.add_pod(pod, name)
        self._filled.clear()

    def _into_fork(self, offer: Offer, nodes: Sequence[list[Pod]]) -> list[str]:
        template = offer.template
        first, self._named = self._named, self._named + len(nodes)
        names = [f"{template.node.metadata.name}-fleet-{at:04d}" for at in range(first, self._named)]
        self.snapshot.add_templates(template.node, template.pods, names)
        self.made.update(zip(names, nodes, strict=True))
        return names

    def drop_node(self, offer: Offer, name: str) -> None:
        """Undo ``add_node`` of a node without pods."""
        # By identity: other nodes without pods are equal.
        made = self.made.pop(name)
        offer.nodes = [pods for pods in offer.nodes if pods is not made]
        self.snapshot.remove_node(name)

    def spend(self, offer: Offer, nodes: int) -> None:
        """Subtract new nodes from the limits."""
        offer.growth -= nodes
        self.most_nodes -= nodes
        for name, need in offer.uses.items():
            self.left[name] -= need * nodes

    def may_let_in_more(self, before: Mapping[int, PodGroup]) -> bool:
        """Return whether pods wait that were refused, and may be no longer for pods that were placed since.

        Args:
            before: What ``waiting`` was when they were refused.
        """
        snapshot, waiting = self.snapshot, self.waiting
        if all(snapshot.only_tightens(group.pod_class) for group in waiting.values()):
            return False
        placed = (group.pod_class for at, group in before.items() if waiting.get(at) is not group)
        return any(snapshot.counted_in(one) for one in placed)

    def serve(self, number: int, count: int) -> None:
        """Remove ``count`` pods from those still pending."""
        group = self.waiting[number]
        if count >= len(group.pods):
            del self.waiting[number]
        elif count:
            self.waiting[number] = PodGroup(group.pods[count:], group.pod_class)
