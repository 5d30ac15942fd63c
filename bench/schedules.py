"""Time of one look at 10,000 entries of time tables, as JSON lines.

5,000 HorizontalPodCronscalers of two rules each, at minutes spread over the day: the first look, one when nothing is due,
and one in the middle of the morning when a hundred and more are. Then what the board is told of coming changes: the
first time, and in a tick in which nothing is due.

    python -m bench.schedules [OBJECTS]
"""

from __future__ import annotations

import json
import statistics
import sys
import time

from kubetide.schedules.decide import absorb, decide, targets_due
from kubetide.schedules.decision import Outcome
from kubetide.schedules.outlook import Announcements
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta, Rule, Table, Target, View
from kubetide.units.time import Instant, after, hours, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")


def tables(count: int) -> tuple[Table, ...]:
    made = []
    for number in range(count):
        minute, hour = number % 60, 6 + number // 60 % 5
        rules = (
            Rule("up", f"0 {minute} {hour} * * 1-5", size=10),
            Rule("down", f"0 {minute} {hour + 12} * * *", size=2),
        )
        target = Target("apps/v1", "Deployment", "web", f"shop-{number}")
        made.append(Table("HorizontalPodCronscaler", "web", f"shop-{number}", "1", target, rules, START))
    return tuple(made)


def look(state: State, now: Instant) -> tuple[float, int]:
    """Return the seconds that a look takes, and how many changes it makes."""
    began = time.perf_counter()
    targets = targets_due(state, now)
    state.apply(Delta(views=tuple(View(target, 2) for target in targets)))
    commands = decide(state, now)
    absorb(state, commands, [Outcome() for _ in commands.runs], now)
    return time.perf_counter() - began, len(commands.runs)


def announce(announcements: Announcements, state: State, now: Instant) -> float:
    """Return the seconds that the announcement of all coming changes takes."""
    began = time.perf_counter()
    announcements.of(state, now)
    return time.perf_counter() - began


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    state = State(Settings(schedules_zone="Europe/Berlin"))
    state.apply(Delta(tables=tables(count)))
    first, _ = look(state, START)
    quiet = [look(state, after(START, seconds(10 * n + 1)))[0] for n in range(5)]
    announcements = Announcements(lambda target: target.kind)
    announced = [announce(announcements, state, after(START, seconds(10 * n + 51))) for n in range(6)]
    busy, runs = look(state, after(START, hours(1)))
    for name, taken, changes in (
        ("first", first, 0),
        ("quiet", statistics.median(quiet), 0),
        ("busy", busy, runs),
        ("announced first", announced[0], 0),
        ("announced again", statistics.median(announced[1:]), 0),
    ):
        print(
            json.dumps(
                {
                    "bench": "schedules",
                    "case": name,
                    "entries": 2 * count,
                    "ms": round(taken * 1e3, 2),
                    "runs": changes,
                }
            )
        )


if __name__ == "__main__":
    main()
