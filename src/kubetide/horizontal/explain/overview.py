"""The HPAs on the page of ``kubetide status``."""

from __future__ import annotations

from typing import Final

from kubetide.horizontal.core import HorizontalCore
from kubetide.horizontal.explain.answers import HpaExplanation, explain
from kubetide.horizontal.explain.headline import joined, why_undecided
from kubetide.horizontal.explain.ways_out import UNDECIDED
from kubetide.loop.status import MOST_NAMED, Overview, Table
from kubetide.units.lists import listed
from kubetide.units.time import Instant

_LONGEST: Final = 300
"""Characters of a reason in a row."""


def _tables(core: HorizontalCore, now: Instant) -> tuple[Table, ...]:
    rows = []
    failing, undecided, capped = list[str](), list[str](), list[str]()
    for key in sorted(core.state.specs):
        found = explain(core.state, key, now)
        if found.current is None or any(one.problem for one in found.metrics):
            failing.append("/".join(key))
        elif any(one.code in UNDECIDED for one in found.reasons):
            undecided.append("/".join(key))
        if found.proposal is not None and found.proposal > found.maximum:
            capped.append("/".join(key))
        rows.append(
            (
                "/".join(key),
                found.target,
                found.current,
                found.desired,
                found.minimum,
                found.maximum,
                limited_by(found),
            )
        )
    columns = ("hpa", "target", "current", "desired", "min", "max", "limited by")
    said = (
        (failing, "HPAs whose scale or metric cannot be read"),
        (undecided, "HPAs that decide nothing"),
        (capped, "HPAs that would go above their maximum"),
        (
            ["/".join(key) for key in core.state.left_alone],
            "HPAs left alone, as another controller may serve them",
        ),
    )
    sentence = " ".join(f"{what}: {listed(names, MOST_NAMED)}." for names, what in said if names)
    return (Table("hpas", columns, tuple(rows), sentence),)


def limited_by(found: HpaExplanation) -> str:
    """Return what limits the number below or above the proposals; empty if nothing does."""
    parts = [f"metric {one.name}: {one.problem}" for one in found.metrics if one.problem]
    if found.proposal is None:
        return "; ".join(parts) or _cut(why_undecided(found.reasons))
    if found.holds:
        parts.append(f"{joined(found.holds)} ({found.proposal} proposed)")
    return "; ".join(parts)


def _cut(text: str) -> str:
    """Return the text within a row's length; a selector that thousands of HPAs share names all of them."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


OVERVIEW = Overview(_tables, lambda core: tuple(core.state.holds), after_decision=False)
