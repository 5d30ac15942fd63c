"""PodDisruptionBudgets of one loop, and how many disruptions are left after the removals simulated so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.selectors import selects
from tests.nodes.reference.world import Json, World


@dataclass
class Budget:
    namespace: str
    selector: Json | None
    allowed: int

    def matches(self, pod: Json) -> bool:
        labels = pod["metadata"].get("labels") or {}
        return pod["metadata"].get("namespace", "") == self.namespace and selects(self.selector, labels)


@dataclass
class Disruptions:
    """Upstream's tracker. Its counts may go below zero."""

    budgets: list[Budget] = field(default_factory=list)

    @classmethod
    def of(cls, world: World) -> Disruptions:
        return cls(
            [
                Budget(
                    one["metadata"].get("namespace", ""),
                    one["spec"].get("selector"),
                    int((one.get("status") or {}).get("disruptionsAllowed") or 0),
                )
                for one in world.listed("PodDisruptionBudget")
            ]
        )

    def matching(self, pod: Json) -> list[Budget]:
        return [one for one in self.budgets if one.matches(pod)]

    def allow_all_at_once(self, pods: list[Json]) -> bool:
        """Return whether every budget has a disruption for each of these pods that it covers."""
        for budget in self.budgets:
            covered = sum(1 for pod in pods if budget.matches(pod))
            if covered > 0 and budget.allowed < covered:
                return False
        return True

    def use(self, pods: list[Json]) -> None:
        for budget in self.budgets:
            budget.allowed -= sum(1 for pod in pods if budget.matches(pod))
