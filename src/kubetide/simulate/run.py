"""Runs a scenario: as fast as possible in virtual time, or live at a speed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.embedded.apiserver.admission import Caller
from kubetide.explain.figures import FigureTable
from kubetide.loop import loop_entries, parse_flags
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.ports.clock import Clock
from kubetide.runtime.process import ended_by_signals, tune_gc
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import Pace, run_paced, run_virtual
from kubetide.scheduling.filters.in_use import plugins_sentence, use_filters, with_plugins
from kubetide.simulate.outcome.marks import MarkingRecorder
from kubetide.simulate.outcome.restless import restless
from kubetide.simulate.outcome.run_figures import RunFigures
from kubetide.simulate.outcome.stuck import conflicts, hpas_of, stuck
from kubetide.simulate.outcome.summary import Summary, summarize
from kubetide.simulate.outcome.timeline import Mark, Timeline
from kubetide.simulate.persisted import PersistedRun
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.machines import prices_of, with_created
from kubetide.simulate.scenarios.scenario import Scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import ZERO, Instant, before, between, parse_duration, to_seconds

_NEW_OBJECTS: Final = 1_000_000
"""Between two collections of garbage: what a run makes goes without them, and their pauses harm nobody in it."""


class RunResult(msgspec.Struct, frozen=True):
    """The result of a run.

    Attributes:
        violations: Invariants that were broken, a sentence each.
        unsettled: What had not come to rest at the end, a sentence each; not a fault by itself.
        interrupted: Whether Ctrl-C or SIGTERM ended it early.
        stuck: What could not scale, a sentence each; notices as well.
        pace: Of a live run, how fast it was to be and how fast it was.
    """

    timeline: Timeline
    summary: Summary
    violations: tuple[str, ...]
    unsettled: tuple[str, ...]
    interrupted: bool = False
    pace: Pace | None = None
    stuck: tuple[str, ...] = ()


Beside = Callable[[World], AbstractAsyncContextManager[None]]
"""Something that is open while a world runs."""

Webhooks = AbstractAsyncContextManager[Caller]
"""What calls admission webhooks while it is open."""


class _Run:
    """What both ways of running share."""

    def __init__(
        self,
        scenario: Scenario,
        *,
        base: Path,
        out: Path | None,
        seed: int,
        end: Instant,
        live: bool,
        warn: Callable[[str], None],
        on_sample: Callable[[Timeline], None] | None = None,
        on_mark: Callable[[Mark], None] | None = None,
        beside: Beside | None = None,
        persisted: PersistedRun | None = None,
        webhooks: Webhooks | None = None,
    ) -> None:
        self._scenario = scenario
        self._base = base
        self._seed = seed
        self._end = end
        self._on_sample = on_sample
        self._on_mark = on_mark
        self._warn = warn
        self._beside = beside
        self._persisted = persisted
        self._webhooks = webhooks
        self._writer = None if out is None else RecordWriter(out, warn=warn, at_once=live)
        self._world: World | None = None
        self._figures = RunFigures()
        loops = scenario.loops
        # Of those with figures of their own, the one that ticks most often.
        self._keeps_figures = next((one for one in ("nodes", "horizontal", *loops) if one in loops), "")

    @property
    def warm_up_start(self) -> Instant:
        """When the run begins: with the warm-up, or at the time of the stored state."""
        first = before(start_of(self._scenario), parse_duration(self._scenario.warm_up))
        return first if self._persisted is None else self._persisted.resumes_at or first

    def run(self, start: Callable[[Callable[[Clock], Coroutine[Any, Any, None]]], None]) -> RunResult:
        """Run to the end; Ctrl-C and SIGTERM end it early and cleanly, with the result so far."""
        tune_gc(most_new=_NEW_OBJECTS)
        try:
            with ended_by_signals():
                start(self.main)
        except KeyboardInterrupt:
            if self._world is None:
                raise
            return self.result(interrupted=True)
        return self.result()

    async def main(self, clock: Clock) -> None:
        entries = loop_entries(self._scenario.loops)
        settings = parse_flags(self._scenario.flags, entries)
        filters = with_plugins(settings.of(NodesSettings).scheduler_plugins)
        use_filters(filters)
        if filters.plugins:
            self._warn(plugins_sentence(filters))
        if self._writer is not None:
            self._writer.start(plugins=(*filters.plugins, *settings.plugins(entries)))
        try:
            async with nullcontext() if self._webhooks is None else self._webhooks as caller:
                await self._play(clock, caller)
        finally:
            if self._writer is not None:
                self._writer.close()

    async def unplayed(self, clock: Clock) -> None:
        """Make the world and close it, before its first step."""
        await self._made(clock, None).close()

    @property
    def has_begun(self) -> bool:
        return self._world is not None

    async def _play(self, clock: Clock, webhooks: Caller | None) -> None:
        world = self._made(clock, webhooks)
        for notice in world.timeline.notices:
            self._warn(notice)
        async with nullcontext() if self._beside is None else self._beside(world):
            try:
                await world.run()
            finally:
                await world.close()

    def _made(self, clock: Clock, webhooks: Caller | None) -> World:
        self._world = world = World(
            self._scenario,
            clock,
            base=self._base,
            end=self._end,
            seed=self._seed,
            recorder=MarkingRecorder(self._writer or NullRecorder(), self._mark, self._figures_with),
            on_sample=self._on_sample,
            persisted=self._persisted,
            webhooks=webhooks,
            served=self._beside is not None,
        )
        timeline = world.timeline
        timeline.currency, timeline.prices = self._scenario.currency, prices_of(self._scenario)
        timeline.warm_up_s = to_seconds(max(between(clock.now(), world.start), ZERO))
        return world

    def result(self, *, interrupted: bool = False) -> RunResult:
        assert self._world is not None, "asked before the run"
        timeline = self._world.timeline
        timeline.prices = with_created(timeline.prices, (*timeline.nodes, *timeline.largest))
        found = stuck(self._world, manifests_of(self._scenario, self._base, skipped=[]))
        hours = len(timeline.pending) * timeline.step_s / 3600
        turning = restless(timeline.marks, hpas_of(self._world), hours)
        timeline.notices += (*found, *conflicts(self._world), *turning)
        return RunResult(
            timeline=timeline,
            summary=summarize(self._scenario.name, timeline),
            violations=tuple(self._world.violations()),
            unsettled=tuple(self._world.unsettled()),
            interrupted=interrupted,
            stuck=found,
        )

    def _figures_with(self, loop: str) -> tuple[FigureTable, ...]:
        if self._world is None or loop != self._keeps_figures:
            return ()
        return self._figures.of(self._world.timeline)

    def _mark(self, mark: Mark) -> None:
        if self._world is not None:
            self._world.timeline.marks.append(mark)
        if self._on_mark is not None:
            self._on_mark(mark)


def run_simulation(
    scenario: Scenario,
    *,
    base: Path,
    out: Path | None,
    seed: int,
    warn: Callable[[str], None],
    progress: Callable[[Instant], None] | None = None,
) -> RunResult:
    """Run a scenario in virtual time, from its start for its duration, or until Ctrl-C or SIGTERM.

    Args:
        base: The folder that the scenario's files lie beside.
        out: Where the records go; None keeps none.
        warn: Called with a sentence for what the run leaves out, and when records cannot be written.
        progress: Called with the virtual time after each sampling step.
    Raises: ScenarioError, FlagError, TraceError, RecordError; KeyboardInterrupt before it began.
    """
    end = Instant(start_of(scenario) + parse_duration(scenario.duration))

    def sampled(report: Callable[[Instant], None], timeline: Timeline) -> None:
        report(Instant(timeline.start + round((len(timeline.pending) - 1) * timeline.step_s * 1e9)))

    on_sample = None if progress is None else partial(sampled, progress)
    run = _Run(scenario, base=base, out=out, seed=seed, end=end, live=False, warn=warn, on_sample=on_sample)
    return run.run(lambda main: run_virtual(main, start=run.warm_up_start))


class LiveRun:
    """Runs a scenario in real time, ``speed`` times as fast, until ``until``, Ctrl-C or SIGTERM.

    Time never runs ahead of the work: where the work cannot keep up with the speed, the run is slower.

    ``beside`` is open while the world runs; ``persisted`` is where its state is stored and loaded from;
    ``webhooks`` calls admission webhooks.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        base: Path,
        out: Path,
        seed: int,
        speed: float,
        until: Instant,
        warn: Callable[[str], None],
        on_sample: Callable[[Timeline], None],
        on_mark: Callable[[Mark], None],
        beside: Beside | None = None,
        persisted: PersistedRun | None = None,
        webhooks: Webhooks | None = None,
    ) -> None:
        self._pace = Pace(speed)
        self._run = _Run(
            scenario,
            base=base,
            out=out,
            seed=seed,
            end=until,
            live=True,
            warn=warn,
            on_sample=on_sample,
            on_mark=on_mark,
            beside=beside,
            persisted=persisted,
            webhooks=webhooks,
        )

    def run(self) -> RunResult:
        """Run to the end; Ctrl-C and SIGTERM end it early and cleanly, with the result so far.

        Raises: KeyboardInterrupt when interrupted before it began; the errors of ``run_simulation``.
        """
        start, pace = self._run.warm_up_start, self._pace
        result = self._run.run(lambda main: run_paced(main, start=start, pace=pace))
        return msgspec.structs.replace(result, pace=pace)

    @property
    def has_begun(self) -> bool:
        """Whether there is a result, though the run was interrupted."""
        return self._run.has_begun

    def unplayed(self) -> RunResult:
        """Return the result of a run that was interrupted before it began. Raises: the errors of ``run``."""
        run_paced(self._run.unplayed, start=self._run.warm_up_start, pace=self._pace)
        return self._run.result(interrupted=True)
