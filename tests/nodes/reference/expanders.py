"""The choice among groups that could be scaled up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.nodes.reference.places import Place
from tests.nodes.reference.prices import score
from tests.nodes.reference.priorities import of_highest_priority
from tests.nodes.reference.snapshot import amount, requests
from tests.nodes.reference.world import Json, World


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


def choose(world: World, options: list[Option], templates: dict[str, Place]) -> Choice | None:
    """Let each expander of the chain keep the best, until one is left; of several take that of the smallest group id.

    `random` keeps all here, as it can only be the last. Only `price` can leave none: return None. No recorded story has
    such a call, and the player of stories does not note it.
    """
    left = options
    for name in world.flags.text("expander").split(","):
        left = _filtered(name, world, left, templates)
        if len(left) == 1:
            return Choice(options, left[0], [])
    if not left:
        return None
    among = sorted(one.group for one in left)
    return Choice(options, min(left, key=lambda one: one.group), among)


def _filtered(name: str, world: World, options: list[Option], templates: dict[str, Place]) -> list[Option]:
    if name == "random":
        return options
    if name == "priority":
        best = of_highest_priority(world, [one.group for one in options]) if options else []
        return [one for one in options if one.group in best]
    if name == "most-pods":
        return _least(options, lambda option: -len(option.pods))
    if name == "least-nodes":
        return _least(options, lambda option: option.node_count)
    if name == "least-waste":
        return _least(options, lambda option: _waste(option, templates[option.group].node))
    if name == "price":
        return _cheapest(world, options, templates)
    raise ValueError(f"the reference knows no expander {name}")


def _least(options: list[Option], measure: Callable[[Option], float]) -> list[Option]:
    least = min(map(measure, options), default=0)
    return [one for one in options if measure(one) == least]


def _cheapest(world: World, options: list[Option], templates: dict[str, Place]) -> list[Option]:
    """Keep the options of the least score; those whose nodes have no price are dropped."""
    scores: dict[str, float] = {}
    for one in options:
        exists = world.groups[one.group].exists
        found = score(world, templates[one.group].node, one.node_count, one.pods, exists=exists)
        if found is not None:
            scores[one.group] = found
    return _least([one for one in options if one.group in scores], lambda option: scores[option.group])


def _waste(option: Option, node: Json) -> float:
    """Shares of processor and memory that stay unused, added up; of capacity, not of what is allocatable."""
    given = node["status"].get("capacity") or {}
    total = 0.0
    for name in ("cpu", "memory"):
        has = amount(name, given.get(name, "0")) * option.node_count
        wants = sum(requests(one).get(name, 0) for one in option.pods)
        total += (has - wants) / has
    return total
