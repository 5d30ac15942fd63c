"""Plays random scenarios, one after another: ``python -m tests.soak [--seed S] [--hours N]``."""

from __future__ import annotations

import argparse
import sys
import time

from tests.soak.playing import command, play


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--seed", type=int, default=1000, help="of the first run; each next one has the next")
    parser.add_argument("--hours", type=float, default=50.0, help="virtual hours to play in all")
    parser.add_argument("--runs", type=int, help="runs to play, in place of --hours")
    parser.add_argument("--minutes", type=int, default=150, help="virtual minutes of a run")
    options = parser.parse_args(arguments)
    runs = options.runs if options.runs is not None else round(options.hours * 60 / options.minutes) or 1
    failed = 0
    for seed in range(options.seed, options.seed + runs):
        begun = time.process_time()
        try:
            played = play(seed, options.minutes, replays=True)
            wrong = played.wrong
            told = f"{played.bindings} pods bound, {time.process_time() - begun:.1f} s of CPU"
        except Exception as error:  # noqa: BLE001  # a crash is a failed run, the others are still played
            wrong, told = [f"raised {error!r}"[:500]], "ended early"
        print(f"seed {seed}: {'wrong' if wrong else 'good'}, {told}", flush=True)
        if wrong:
            failed += 1
            print(*(f"  {one}" for one in wrong), f"  {command(seed, options.minutes)}", sep="\n", flush=True)
    print(f"{runs - failed} good, {failed} wrong")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
