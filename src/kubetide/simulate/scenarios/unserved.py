"""Objects that no loop of a run acts on, though another loop would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

from kubetide.loop import expand_groups
from kubetide.objects.kinds import (
    ELASTIC_WORKLOADS,
    HPAS,
    SCALED_OBJECTS,
    TIME_TABLE_KINDS,
    VPAS,
    Kind,
)
from kubetide.simulate.scenarios.build import Manifests, manifests_of
from kubetide.simulate.scenarios.scenario import Scenario

_LOOPS: Final[dict[Kind[Any], tuple[str, ...]]] = {
    **dict.fromkeys(TIME_TABLE_KINDS, ("schedules",)),
    SCALED_OBJECTS: ("schedules", "scaledobjects"),
    HPAS: ("horizontal",),
    VPAS: ("recommender", "updater", "admission"),
    ELASTIC_WORKLOADS: ("elastic",),
}
"""The loops that act on objects of a kind; any of them will do."""

_WORDS: Final[dict[Kind[Any], str]] = {VPAS: "`vertical`"}
"""What to write in ``loops`` where that is a group."""


def unserved_in(scenario: Scenario, base: Path) -> tuple[str, ...]:
    """Return a sentence for each kind of object in a scenario that none of its loops acts on. Raises ScenarioError.

    Not for a variant: one without some of the loops is there to show what they bring.
    """
    return tuple(unserved(manifests_of(scenario, base), expand_groups(scenario.loops)))


def unserved(manifests: Manifests, loops: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each kind of which there are objects and no loop; ``loops`` are the names of those that run."""
    for kind, number in Counter(kind for kind, _ in manifests).items():
        known = _LOOPS.get(kind)
        if known is None or not loops or not set(known).isdisjoint(loops):
            continue
        add = _WORDS.get(kind) or " or ".join(f"`{name}`" for name in known)
        yield f"{kind.kind}: {number} without effect: no loop of this run acts on the kind; add {add} to `loops`"
