"""Plays random scenarios, one after another: ``python -m tests.soak [--seed S] [--hours N]``.

A soak that was stopped goes on where it was: give the same seed again, and as many hours as it is to have in all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec
from tests.soak.playing import command, play
from tests.soak.progress import save, taken_up


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1000, help="of the first run; each next one has the next")
    parser.add_argument("--hours", type=float, default=50.0, help="virtual hours to play in all")
    parser.add_argument(
        "--runs", type=int, help="runs to play, in place of --hours; these are always played anew"
    )
    parser.add_argument("--minutes", type=int, default=150, help="virtual minutes of a run")
    parser.add_argument(
        "--progress", type=Path, default=Path(".soak"), help="folder that remembers what was played"
    )
    options = parser.parse_args(arguments)
    runs = options.runs if options.runs is not None else round(options.hours * 60 / options.minutes) or 1
    path = None if options.runs is not None else options.progress / f"{options.seed}-{options.minutes}.json"
    progress = taken_up(path or Path(), options.seed, options.minutes)
    if progress.following > options.seed:
        print(f"{progress.following - options.seed} runs of {runs} were played before ({path})", flush=True)
    for seed in range(progress.following, options.seed + runs):
        begun = time.process_time()
        try:
            played = play(seed, options.minutes, replays=True)
            wrong = played.wrong
            reported = f"{played.bindings} pods bound, {time.process_time() - begun:.1f} s of CPU"
        except Exception as error:  # noqa: BLE001  # a crash is a failed run, the others are still played
            wrong, reported = [f"raised {error!r}"[:500]], "ended early"
        print(f"seed {seed}: {'wrong' if wrong else 'good'}, {reported}", flush=True)
        if wrong:
            print(*(f"  {one}" for one in wrong), f"  {command(seed, options.minutes)}", sep="\n", flush=True)
        failed = (*progress.failed, seed) if wrong else progress.failed
        progress = msgspec.structs.replace(progress, following=seed + 1, failed=failed)
        if path is not None:
            save(path, progress)
    named = f": seeds {', '.join(map(str, progress.failed))}" if progress.failed else ""
    print(
        f"{progress.following - options.seed - len(progress.failed)} good, {len(progress.failed)} wrong{named}"
    )
    return 1 if progress.failed else 0


if __name__ == "__main__":
    sys.exit(main())
