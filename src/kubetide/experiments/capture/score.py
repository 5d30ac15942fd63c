"""How close the simulation of a captured scenario is to the real run."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kubetide.units.time import Duration, Instant

if TYPE_CHECKING:
    # Those who only show a card need no reader of records.
    from kubetide.experiments.capture.observed import Seen

CARD: Final = "score.json"
"""The card of a captured scenario, beside it."""

_MIB: Final = 1000 << 20
"""In thousandths of bytes."""

Steps = Sequence[tuple[Instant, int]]
"""A number over time: each value from its time on."""


class Score(msgspec.Struct, frozen=True):
    """One number over time, as it was and as it was simulated, compared step by step.

    Attributes:
        name: Of what.
        steps: How many were compared.
        same: Those in which both are the same.
        near: Those in which they are within the tolerance: one replica, a tenth of a recommendation, or one step's time.
        mean, simulated: Means of both.
    """

    name: str
    steps: int
    same: int
    near: int
    mean: float
    simulated: float


def error_bar(scenario: Path) -> str:
    """Return a sentence on how close a captured scenario is to the real run; empty without a score card."""
    try:
        card = msgspec.json.decode((scenario.parent / CARD).read_bytes(), type=list[Score])
    except (OSError, msgspec.DecodeError):
        return ""
    parts = [
        f"{one.name} {one.near / one.steps:.1%} near, in the mean {one.simulated:.2f} for {one.mean:.2f}"
        for one in card
    ]
    return f"captured; simulated as it was: {'; '.join(parts)}" if parts else ""


def scores(recorded: Seen, simulated: Seen) -> list[Score]:
    """Return scores for the replicas of what HPAs and time tables scale, for what VPAs recommend, and for the nodes."""
    found = []
    ours, theirs = recorded.services, simulated.services
    for key, history in sorted(ours.hpas.items() if ours else ()):
        again = theirs.hpas.get(key) if theirs else None
        there = [(tick.at, tick.replicas) for tick in history.ticks if tick.replicas is not None]
        here = (
            [(tick.at, tick.replicas) for tick in again.ticks if tick.replicas is not None] if again else []
        )
        if ours is not None and there and here:
            found.append(_within_one(f"replicas of {'/'.join(key)}", there, here, ours.period))
    found += _by_tables(recorded, simulated)
    found += _recommended(recorded, simulated)
    counts = [
        [(count.at, count.nodes) for count in one.counts] for one in (recorded.cluster, simulated.cluster)
    ]
    if all(counts):
        found.append(_within_a_step("nodes", counts[0], counts[1], _node_step(recorded)))
    return found


def _by_tables(recorded: Seen, simulated: Seen) -> Iterator[Score]:
    """Yield a score for the replicas of each workload that a time table scales."""
    tables = recorded.tables.at_start if recorded.tables else ()
    step, last = recorded.cluster.settings.scan_interval, recorded.cluster.last
    for key in sorted({(table.target.namespace, table.target.name) for table in tables}):
        there, here = (one.cluster.replicas.get(key) for one in (recorded, simulated))
        if there and here:
            # An HPA may scale the same workload, and has a score of that name.
            title = f"replicas of {'/'.join(key)} by time table"
            yield _within_one(title, [*there, (last, there[-1][1])], here, step)


def _recommended(recorded: Seen, simulated: Seen) -> Iterator[Score]:
    """Yield a score for each container and resource of each VPA, in milli-CPU and MiB; near is within a tenth."""
    if recorded.vertical is None or simulated.vertical is None:
        return
    step, last = recorded.vertical.recommender.recommender_interval, recorded.cluster.last
    for name, targets in sorted(recorded.vertical.targets.items()):
        again = simulated.vertical.targets.get(name)
        if not again:
            continue
        unit = _MIB if name[-1] == "memory" else 1
        there, here = ([(at, amount // unit) for at, amount in one] for one in (targets, again))
        namespace, vpa, container, resource = name
        title = f"{resource} of {namespace}/{vpa} {container}"
        pairs = _pairs([*there, (last, there[-1][1])], here, step)
        yield _score(title, pairs, sum(abs(a - b) <= a / 10 for a, b in pairs))


def _node_step(seen: Seen) -> Duration:
    """Return the time between two counts of nodes: that of Prometheus' numbers, or the node loop's."""
    own = seen.services.step if seen.services else None
    return own or seen.cluster.settings.scan_interval


def _within_one(name: str, there: Steps, here: Steps, step: Duration) -> Score:
    pairs = _pairs(there, here, step)
    near = sum(abs(a - b) <= 1 for a, b in pairs)
    return _score(name, pairs, near)


def _within_a_step(name: str, there: Steps, here: Steps, step: Duration) -> Score:
    ours, theirs = (_at_steps(one, there, step) for one in (there, here))
    near = sum(value in ours[max(0, index - 1) : index + 2] for index, value in enumerate(theirs))
    return _score(name, list(zip(ours, theirs, strict=True)), near)


def _pairs(there: Steps, here: Steps, step: Duration) -> list[tuple[int, int]]:
    return list(zip(*(_at_steps(one, there, step) for one in (there, here)), strict=True))


def _score(name: str, pairs: Sequence[tuple[int, int]], near: int) -> Score:
    return Score(
        name=name,
        steps=len(pairs),
        same=sum(a == b for a, b in pairs),
        near=near,
        mean=sum(a for a, _ in pairs) / len(pairs),
        simulated=sum(b for _, b in pairs) / len(pairs),
    )


def _at_steps(values: Steps, span: Steps, step: Duration) -> list[int]:
    """Return the value at each step of the span's time; before the first value that one."""
    times = [at for at, _ in values]
    count = (span[-1][0] - span[0][0]) // step + 1
    places = (max(bisect_right(times, span[0][0] + index * step) - 1, 0) for index in range(count))
    return [values[place][1] for place in places]
