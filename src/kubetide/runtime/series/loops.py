"""``kubetide_loop_*`` and ``kubetide_decisions_total``: ticks and decisions of each loop, also of other packages' loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kubetide.explain.records import Record
from kubetide.loop.wiring import RunningLoop
from kubetide.units.exposition import Numbers, Registry

Listener = Callable[[Record], None]
_NS = 1_000_000_000


def show_loops(registry: Registry, loops: Sequence[RunningLoop]) -> dict[str, Listener]:
    """Add the series of ticks and decisions; return, by loop, the function to call with its records."""
    last = registry.gauge(
        "kubetide_loop_last_tick_timestamp_seconds",
        "Unix time at which a tick of the loop last ended well.",
        ("loop",),
    )
    failures = registry.counter(
        "kubetide_loop_tick_failures_total", "Ticks of the loop that ended with an error.", ("loop",)
    )
    decisions = registry.counter(
        "kubetide_decisions_total",
        "Decisions of the loop to change something, by the reason's code; those that were only advised too.",
        ("loop", "reason"),
    )

    def collect() -> None:
        for entry, loop, _ in loops:
            failures.set(loop.health.failures, entry.name)
            if loop.health.last_tick is not None:
                last.set(loop.health.last_tick / _NS, entry.name)

    registry.before_scrape(collect)
    return {one.entry.name: _counting(decisions, one) for one in loops}


def _counting(decisions: Numbers, loop: RunningLoop) -> Listener:
    name, vocabulary = loop.entry.name, loop.entry.vocabulary

    def on_record(record: Record) -> None:
        for reason in record.reasons:
            if vocabulary.is_action(reason):
                decisions.add(1, name, reason.code)

    return on_record
