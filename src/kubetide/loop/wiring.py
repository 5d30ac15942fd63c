"""Builds the loops of a process from their entries, ready to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from kubetide.loop.entry import LoopEntry
from kubetide.loop.protocol import Loop, Parts
from kubetide.loop.runner import Runner
from kubetide.loop.settings import LoopSettings


class RunningLoop(NamedTuple):
    """A loop with its entry and its runner."""

    entry: LoopEntry[Any]
    loop: Loop
    runner: Runner


def wire(entries: Sequence[LoopEntry[Any]], parts: Parts, settings: LoopSettings) -> tuple[RunningLoop, ...]:
    """Return the loops of these entries; those that read the board wait for the ticks of the others."""
    shown, made = parts, {}
    for entry in entries:
        if entry.view is not None:
            made[entry.name] = entry.make(parts, settings.by_name[entry.name])
            shown = entry.view(made[entry.name], shown)
    loops = [
        (entry, made.get(entry.name) or entry.make(shown, settings.by_name[entry.name])) for entry in entries
    ]
    runners = {entry.name: Runner(loop, parts.clock) for entry, loop in loops if not entry.reads_board}
    announcing = tuple(runners.values())
    runners |= {
        entry.name: Runner(loop, parts.clock, waits_for=announcing)
        for entry, loop in loops
        if entry.reads_board
    }
    return tuple(RunningLoop(entry, loop, runners[entry.name]) for entry, loop in loops)
