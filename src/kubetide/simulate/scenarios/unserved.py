"""Objects that no loop of a run acts on, though another loop would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from kubetide.loop import expand_groups
from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    ELASTIC_WORKLOADS,
    HPAS,
    SCALED_OBJECTS,
    TIME_TABLE_KINDS,
    VPAS,
    Kind,
)
from kubetide.objects.scaled_objects import need_hpa
from kubetide.simulate.scenarios.build import Manifests, manifests_of
from kubetide.simulate.scenarios.scenario import Scenario

_LOOPS: Final[dict[Kind[Any], tuple[str, ...]]] = {
    **dict.fromkeys(TIME_TABLE_KINDS, ("schedules",)),
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


def _loops_of(kind: Kind[Any], obj: Json) -> tuple[str, ...]:
    """Return the loops that act on an object; of a ScaledObject the triggers decide."""
    if kind != SCALED_OBJECTS:
        return _LOOPS.get(kind, ())
    triggers = (obj.get("spec") or {}).get("triggers") or ()
    return ("scaledobjects",) if need_hpa(_types(triggers)) else ("schedules",)


def _types(triggers: Iterable[Any]) -> Iterator[str]:
    return (str(one.get("type")) for one in triggers if isinstance(one, dict))


def unserved(manifests: Manifests, loops: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each kind of which there are objects and no loop; ``loops`` are the names of those that run."""
    for (kind, known), number in Counter((kind, _loops_of(kind, obj)) for kind, obj in manifests).items():
        if not known or not loops or not set(known).isdisjoint(loops):
            continue
        whom = "such objects" if kind == SCALED_OBJECTS else "the kind"
        add = _WORDS.get(kind) or " or ".join(f"`{name}`" for name in known)
        yield f"{kind.kind}: {number} without effect: no loop of this run acts on {whom}; add {add} to `loops`"
