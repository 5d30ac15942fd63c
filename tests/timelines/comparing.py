"""Recordings, and how a played timeline differs from one.

A recording has each fact with the seconds from the start at which every run on a real control plane saw it, None
where it did not. A fact that all runs saw must come; one that some saw may come; no other may. It must come between the
earliest and the latest time, widened by ``TOLERANCE_S``: watches and requests take time there, and none in the
embedded cluster. Two facts whose order was the same in all runs must come in that order if they are about one pod, or
were never closer than ``APART_S``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from tests.timelines.observer import Noted

TOLERANCE_S = 0.3
APART_S = 0.2
FOLDER = Path(__file__).parent / "recorded"

Recording = dict[str, list[float | None]]
"""By fact, when each run saw it; facts in the order of their earliest times."""


def recording_of(runs: Sequence[Sequence[Noted]]) -> Recording:
    """Return the recording of some runs."""
    seen: Recording = {}
    for number, run in enumerate(runs):
        for at, fact in run:
            times = seen.setdefault(fact, [None] * len(runs))
            if times[number] is None:
                times[number] = at
    return dict(sorted(seen.items(), key=lambda item: earliest(item[1])))


def earliest(times: Sequence[float | None]) -> float:
    return min(at for at in times if at is not None)


def latest(times: Sequence[float | None]) -> float:
    return max(at for at in times if at is not None)


def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def read(name: str) -> Recording:
    """Return the recording of a timeline."""
    return msgspec.json.decode(path_of(name).read_bytes(), type=dict[str, list[float | None]])


def write(name: str, recording: Recording) -> None:
    """Store a recording, one fact a line."""
    encode = msgspec.json.encode
    lines = (f"{encode(fact).decode()}: {encode(times).decode()}" for fact, times in recording.items())
    path_of(name).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def differences(recording: Recording, played: Sequence[Noted], slack: float = 0.0) -> Iterator[str]:
    """Yield how what was played differs from a recording, one sentence each; ``slack`` is added to the tolerance."""
    first = _first_times(played)
    yield from missing_facts(recording, played, TOLERANCE_S + slack)
    for fact, at in first.items():
        if fact not in recording:
            yield f"{fact}: at {at:.2f} s, never recorded"
    yield from _disordered(recording, list(first))


def missing_facts(
    recording: Recording, played: Sequence[Noted], tolerance: float = TOLERANCE_S
) -> Iterator[str]:
    """Yield which recorded facts do not come, or come at another time, one sentence each."""
    first = _first_times(played)
    for fact, times in recording.items():
        if fact in first:
            low, high = earliest(times), latest(times)
            if not low - tolerance <= first[fact] <= high + tolerance:
                yield f"{fact}: at {first[fact]:.2f} s, recorded between {low:.2f} and {high:.2f} s"
        elif None not in times:
            yield f"{fact}: does not come, recorded at {earliest(times):.2f} s"


def _first_times(played: Sequence[Noted]) -> dict[str, float]:
    first: dict[str, float] = {}
    for at, fact in played:
        first.setdefault(fact, at)
    return first


def _disordered(recording: Recording, order: list[str]) -> Iterator[str]:
    for index, later in enumerate(order):
        for sooner in order[:index]:
            if sooner in recording and later in recording and _always(recording, later, sooner):
                yield f"{later}: comes after {sooner!r}, recorded before it"


def _always(recording: Recording, one: str, other: str) -> bool:
    """Return whether all runs saw one fact before the other, clearly."""
    subject = one.split(" ")[:2]
    same_pod = subject[0] == "Pod" and "*" not in subject[1] and subject == other.split(" ")[:2]
    apart = 0 if same_pod else APART_S
    pairs = [
        (before, after)
        for before, after in zip(recording[one], recording[other], strict=True)
        if before is not None and after is not None
    ]
    return bool(pairs) and all(before + apart < after for before, after in pairs)
