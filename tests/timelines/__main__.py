"""Records timelines on a real control plane, or shows how the embedded cluster plays them.

python -m tests.timelines record [NAME ...] [--runs 4]
python -m tests.timelines compare [NAME ...] [--all]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.timelines.catalogue import TIMELINES
from tests.timelines.comparing import differences, read, recording_of, write
from tests.timelines.observer import Noted
from tests.timelines.on_plane import plane_for, play_real
from tests.timelines.stages import play_embedded


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.timelines", description=__doc__)
    parser.add_argument("do", choices=("record", "compare"))
    parser.add_argument("names", nargs="*", help="timelines; all without names")
    parser.add_argument("--runs", type=int, default=4, help="how often each is recorded")
    parser.add_argument("--all", action="store_true", help="show all facts, not only what differs")
    options = parser.parse_intermixed_args(arguments)
    wrong = 0
    for name in options.names or TIMELINES:
        if options.do == "record":
            record(name, options.runs)
        else:
            wrong += compare(name, everything=options.all)
    return 1 if wrong else 0


def record(name: str, runs: int) -> None:
    """Play a timeline several times on a control plane, and store what came of it."""
    timeline = TIMELINES[name]
    # What the node lifecycle controller knows of lost nodes, and how many it has evicted lately, outlasts a run.
    on_each = runs if timeline.grace is None else 1
    found: list[list[Noted]] = []
    while len(found) < runs:
        with tempfile.TemporaryDirectory() as folder, plane_for(timeline, Path(folder)) as plane:
            found += [play_real(timeline, plane) for _ in range(on_each)]
    recording = recording_of(found)
    write(name, recording)
    print(f"{name}: {len(recording)} facts", flush=True)


def compare(name: str, *, everything: bool) -> int:
    """Print how the embedded cluster plays a timeline otherwise, and return in how many points."""
    recording, played = read(name), play_embedded(TIMELINES[name])
    found = list(differences(recording, played, TIMELINES[name].slack_s))
    print(f"{name}: {len(found)} differences")
    if everything:
        ours: dict[str, float] = {}
        for at, fact in played:
            ours.setdefault(fact, at)
        for fact in (*recording, *(fact for fact in ours if fact not in recording)):
            times = " ".join("     -" if at is None else f"{at:6.2f}" for at in recording.get(fact, ()))
            print(f"  {times} | {ours.get(fact, float('nan')):6.2f} {fact}")
    for one in found:
        print(f"  {one}")
    return len(found)


if __name__ == "__main__":
    sys.exit(main())
