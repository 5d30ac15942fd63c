"""VPAs with a problem, for the page of ``kubetide status``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kubetide.explain.algorithm import StepCore
from kubetide.loop.status import MOST_NAMED, Overview, Table
from kubetide.objects.vpa import RECREATE
from kubetide.units.lists import listed
from kubetide.units.time import Instant
from kubetide.vertical.recommender.explain import same_target_text, vpas_by_target
from kubetide.vertical.recommender.facts.members import Vpa
from kubetide.vertical.recommender.state import State
from kubetide.vertical.recommender.usage.cells import counted
from kubetide.vertical.targets import Target


def _tables(core: StepCore[State], now: Instant) -> tuple[Table, ...]:
    del now
    state = core.state
    by_target = vpas_by_target(state)
    rows = [
        (
            "/".join(key),
            known.view.mode or RECREATE,
            "; ".join(problems),
            f"ask: kubetide explain vpa {'/'.join(key)}",
        )
        for key, known in sorted(state.vpas.items())
        if (problems := _problems(state, known, by_target))
    ]
    sentence = f"VPAs with a problem: {listed([row[0] for row in rows], MOST_NAMED)}." if rows else ""
    return (Table("vpas with a problem", ("vpa", "mode", "problem", "more"), tuple(rows), sentence),)


def _problems(state: State, vpa: Vpa, by_target: Mapping[tuple[str, Target], Sequence[str]]) -> Sequence[str]:
    """Return why a VPA has no recommendation, or why its pods do not get it."""
    if vpa.view.target.problem:
        return [vpa.view.target.problem]
    rows = [one for _, one in state.cells_of(vpa)]
    found = [] if rows else ["no pods match it"]
    if rows and not counted(state.aggregates, rows)[2].any():
        found.append("no sample of its containers yet")
    same = by_target.get((vpa.view.namespace, vpa.view.target), ())
    if len(same) > 1 and vpa.view.name in same:
        found.append(same_target_text(same))
    return found


OVERVIEW = Overview(_tables, lambda _: ())
