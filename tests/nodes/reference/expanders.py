"""The choice among groups that could be scaled up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.nodes.reference.snapshot import Place, amount, requests
from tests.nodes.reference.world import Json


@dataclass(eq=False)
class Option:
    """A group with the number of its nodes that would be added, and the pods that these would take."""

    group: str
    node_count: int
    pods: list[Json]
    similar: list[str]


@dataclass
class Choice:
    """One call of the expander."""

    options: list[Option]
    chosen: Option
    random_among: list[str]

    def as_recorded(self) -> Json:
        entry: Json = {
            "options": [
                {
                    "group": one.group,
                    "nodeCount": one.node_count,
                    "pods": len(one.pods),
                    "similarGroups": one.similar,
                }
                for one in self.options
            ],
            "chosen": self.chosen.group,
        }
        return entry | ({"randomAmong": self.random_among} if self.random_among else {})


def choose(chain: str, options: list[Option], templates: dict[str, Place]) -> Choice:
    """Let each expander of the chain keep the best, until one is left; of several take that of the smallest group id.

    `random` keeps all here, as it can only be the last.
    """
    left = options
    for name in chain.split(","):
        if name != "random":
            left = _least(left, _measure(name, templates))
        if len(left) == 1:
            return Choice(options, left[0], [])
    among = sorted(one.group for one in left)
    return Choice(options, min(left, key=lambda one: one.group), among if len(left) > 1 else [])


def _least(options: list[Option], measure: Callable[[Option], float]) -> list[Option]:
    least = min(map(measure, options))
    return [one for one in options if measure(one) == least]


def _measure(name: str, templates: dict[str, Place]) -> Callable[[Option], float]:
    if name == "most-pods":
        return lambda option: -len(option.pods)
    if name == "least-nodes":
        return lambda option: option.node_count
    if name == "least-waste":
        return lambda option: _waste(option, templates[option.group].node)
    raise ValueError(f"the reference knows no expander {name}")


def _waste(option: Option, node: Json) -> float:
    """Shares of processor and memory that stay unused, added up; of capacity, not of what is allocatable."""
    given = node["status"].get("capacity") or {}
    total = 0.0
    for name in ("cpu", "memory"):
        has = amount(name, given.get(name, "0")) * option.node_count
        wants = sum(requests(one).get(name, 0) for one in option.pods)
        total += (has - wants) / has
    return total
