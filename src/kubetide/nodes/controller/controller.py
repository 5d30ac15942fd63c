"""The node controller: a tick gathers, decides, acts, absorbs and records, step by step.

While deletions are in flight it also wakes when the next of them is due, and with --prompt-scale-up once pods are old enough.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kubetide.acting import EventWriter, in_turns
from kubetide.explain.pieces import PIECES_FROM
from kubetide.explain.records import Record, Recorder
from kubetide.loop import BaseLoop, Offload
from kubetide.nodes.controller.act import Actor, ending_error
from kubetide.nodes.controller.board import BoardAnswers
from kubetide.nodes.controller.changed_reasons import ChangedReasons
from kubetide.nodes.controller.events import event_of, spam_filter_of
from kubetide.nodes.controller.figures import figures_of
from kubetide.nodes.controller.gather import Gatherer
from kubetide.nodes.controller.not_understood import NotUnderstood
from kubetide.nodes.controller.status import StatusMap
from kubetide.nodes.controller.stopwatch import Stopwatch
from kubetide.nodes.controller.taint_latency import TaintLatency
from kubetide.nodes.controller.triggers import has_acted, trigger_on_demand
from kubetide.nodes.controller.unchanged_ticks import UnchangedTicks
from kubetide.nodes.controller.whole_state import start_from_record
from kubetide.nodes.controller.writes import Writer, request_processed
from kubetide.nodes.core import encode_commands, encode_delta, encode_outcomes, encode_result
from kubetide.nodes.decide import absorb, decide
from kubetide.nodes.decision import Action, AskExpander, Commands, Outcomes, Result
from kubetide.nodes.expander import packs_all_groups, parse_expanders
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.reasons import worded_as_advice
from kubetide.nodes.records.checkpoint import CHECKPOINT_EVERY, checkpoint_of
from kubetide.nodes.scale_down.deletion.deletions import next_wake
from kubetide.nodes.scale_up.pending.demand import check_sources
from kubetide.nodes.scale_up.pending.pods import old_enough_at
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import Delta, State
from kubetide.nodes.templates.keeping import CONFIG_MAP
from kubetide.objects.cluster import ObjectReference
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, CloudError
from kubetide.ports.expander import ExpanderService, Offer
from kubetide.units.time import Duration, Instant
from kubetide.watching import Caches

T = TypeVar("T")

LOOP = "nodes"
COMPONENT = "cluster-autoscaler"
_HALFWAY = ("pack", "simulate")
"""Steps that go on with what the last one has begun on the snapshot."""


class NodesController(BaseLoop):
    """Scales node groups as upstream's Cluster Autoscaler does."""

    name = LOOP
    early_restarts_period = True
    """Source: Cluster Autoscaler, LoopTrigger: the scan interval begins when a loop ends, whatever began that."""

    def __init__(
        self,
        cluster: Cluster,
        cloud: Cloud,
        clock: Clock,
        recorder: Recorder,
        board: Board | None,
        settings: Settings,
        *,
        seed: int,
        caches: Caches,
        offload: Offload | None = None,
        expander: ExpanderService | None = None,
    ) -> None:
        """Prepare the controller; it sends no request before the first tick.

        Args:
            board: Where intents are read and capacity is answered; None in strict drop-in modes.
            seed: For picks among equals.
            caches: Shared with other loops; the process updates them.
            offload: Runs a decision that may take long where it holds nobody up, such as ``asyncio.to_thread``; None
                where there is only one thread, as in virtual time.
            expander: The expander in a process of its own, which the expander ``grpc`` asks; None where there is none.

        Raises: ValueError for an expander or a demand source that does not exist.
        """
        super().__init__()
        parse_expanders(settings.expander)
        check_sources(settings.demand_sources)
        self._clock = clock
        self._recorder = recorder
        self._answers = BoardAnswers(board, settings)
        self._state = State(
            replace(
                settings,
                gpu_label=cloud.gpu_label,
                knows_machines=cloud.knows_machines,
                pod_prices=cloud.pod_prices,
                provider=cloud.name,
                seed=seed,
            )
        )
        self._offload = offload
        self.deciding = False
        """Whether a decision is made in another thread just now, or over several steps: then ``state`` is in the middle of it, and not to be read."""
        self._looks_anew = False
        """Whether this tick makes a large state anew, as its record is whole: then nothing is cached, and each step takes long."""
        self._gatherer = Gatherer(cluster, cloud, clock, board, self._state, caches)
        if settings.frequent_loops_enabled:
            self.eager = asyncio.Event()
            trigger_on_demand(self._gatherer.pods, self._gatherer.nodes, self._state, self._hurry)
        self._expander = expander
        self._actor = Actor(cluster, cloud, clock, self._ask_expander if expander is not None else None)
        self._taint_latency: TaintLatency | None = None
        if settings.dynamic_node_delete_delay_after_taint_enabled:
            self._taint_latency = TaintLatency(clock, self._gatherer.nodes)
        self._writer = Writer(cluster)
        self._stopwatch: Stopwatch | None = None
        self._events = EventWriter(
            cluster, clock, COMPONENT, program="kubetide", spam_filter=spam_filter_of(settings)
        )
        # Events that upstream does not have; its spam filter is not for them.
        self._notices = EventWriter(cluster, clock, COMPONENT, program="kubetide")
        self._not_understood = NotUnderstood(self._notices)
        self._status = StatusMap(cluster, settings)
        self._unchanged = UnchangedTicks(self._state, clock)
        self._read_pods: tuple[str, ...] = ()
        self._changed_reasons = ChangedReasons()
        self._ticks = self._since_memory = 0
        self._has_acted = False
        """Whether the last tick asked for nodes, began to remove some, or served a ProvisioningRequest."""
        self._old_enough_at: Instant | None = None
        self._failure: CloudError | ApiError | None = None
        """Why the tick counts as failed, though it goes on to its end."""

    @property
    def period(self) -> Duration:
        """The scan interval."""
        return self._state.settings.scan_interval

    @property
    def holds(self) -> Sequence[str]:
        """Why the last tick removed no node."""
        return self._state.holds

    @property
    def state(self) -> State:
        """The state that the last tick decided on; for explanations, not to be changed."""
        return self._state

    @property
    def unwritten(self) -> Collection[KnownKey]:
        """Objects that ask for capacity whose last write failed."""
        return self._writer.unwritten

    @property
    def not_understood(self) -> Mapping[str, int]:
        """How many objects cannot be read now, by resource."""
        return self._not_understood.objects.numbers()

    def stopwatch(self) -> Stopwatch:
        """Return what measures how long the parts of each tick take; nothing does before the first call."""
        if self._stopwatch is None:
            self._stopwatch = self._state.phases = Stopwatch(self._clock)
        return self._stopwatch

    async def synced(self) -> None:
        """Return once all caches that the loop needs are synced; until its first tick the status object says that it begins."""
        await self._status.begin(self._clock.now())
        await self._gatherer.synced()

    async def tick(self) -> None:
        """Run one tick through all its steps. The caches must be synced. Raises CloudError, ApiError."""
        if self._stopwatch is not None:
            self._stopwatch.restart()
        self._state.phases.begin("updateClusterState")
        had_acted, self._has_acted = self._has_acted, False
        try:
            await self._steps()
        finally:
            self.deciding = False
            self._state.phases.begin("loopWait")
            # Upstream compares with the start of the loop before the last, so two loops follow at once.
            if self._has_acted or had_acted:
                self._hurry()
        if self._failure is not None:
            raise self._failure

    async def _steps(self) -> None:
        self._old_enough_at = self._failure = None
        delta = await self._gatherer.begin()
        now = self._clock.now()
        self._ticks += 1
        if why := self._gatherer.config_maps.take_unreadable():
            about = ObjectReference(
                api_version="v1", kind="ConfigMap", namespace=self._state.settings.namespace, name=CONFIG_MAP
            )
            await self._notices.emit(about, "Warning", "LearnedTemplatesUnreadable", why)
        has_memory = self._since_memory + 1 >= CHECKPOINT_EVERY
        rested = self._unchanged.take(delta, now, self._recorder, self._ticks, has_memory=has_memory)
        if rested is not None:
            self._since_memory = 1 if has_memory else self._since_memory + 2
            await self._write_documents(rested, now)
            self._answers.show_sizes(self._state)
            self._gatherer.finished()
            return
        phase = 0
        while True:
            commands = await self._step(delta, now, phase)
            if not commands.next_step:
                break
            elapsed = Duration(self._clock.now() - now)
            delta = Delta(step=commands.next_step, holds=self._state.holds, elapsed=elapsed)
            phase += 1
        self._gatherer.finished()
        if self.eager is not None and self._state.settings.prompt_scale_up:
            self._old_enough_at = old_enough_at(self._state)
        self._unchanged.ended(settled=self._status.is_settled and self._taint_latency is None)

    @property
    def config_map_problems(self) -> Mapping[str, str]:
        """Why ConfigMaps could not be read or written, as sentences, by the name of each; empty for one that could."""
        read, written = self._gatherer.config_maps.problems, self._status.problems
        return {name: read.get(name) or written.get(name, "") for name in (*read, *written)}

    async def _ask_expander(self, asked: AskExpander) -> tuple[str, ...]:
        """Return the groups that the expander in a process of its own prefers. Raises CloudError."""
        tick = self._state.tick
        assert self._expander is not None, "there is one to ask"
        assert tick is not None, "it is asked in the middle of a tick"
        options = [option for option in tick.options if option.group.id in asked.groups]
        offers = [Offer(one.group.id, one.nodes, one.pods) for one in options]
        # As upstream, it is shown a node of each group, whether or not the group is an option.
        nodes = {group: one.node for group, one in tick.templates.items() if one is not None}
        return await self._expander.best_options(offers, nodes)

    def _hurry(self) -> None:
        """Ask for the next tick at once. Source: --frequent-loops-enabled."""
        if self.eager is not None:
            self.eager.set()

    def next_wake(self) -> Instant | None:
        """Return when the next deletion in flight is due, or waiting pods are old enough; None after a failure: the next tick must read all anew."""
        if self._gatherer.failed_midway:
            return None
        times = (next_wake(self._state.memory.scale_down.deletions), self._old_enough_at)
        return min((at for at in times if at is not None), default=None)

    async def wake(self) -> None:
        """Advance the deletions in flight by one step, or ask for a tick as pods are old enough. Raises ApiError."""
        if self._old_enough_at is not None and self._old_enough_at <= self._clock.now():
            self._old_enough_at = None
            self._hurry()
            return
        delta = await self._gatherer.actuation(self._read_pods)
        self._ticks += 1
        commands = await self._step(delta, self._clock.now(), 0)
        self._read_pods = commands.read_pods
        self._gatherer.finished()

    async def close(self) -> None:
        """Delete the status object, as upstream does on SIGTERM."""
        await self._events.close()
        await self._status.remove()

    async def _step(self, delta: Delta, now: Instant, phase: int) -> Commands:
        full = phase == 0 and (self._gatherer.anew or self._recorder.wants_full(LOOP))
        pods = len(self._state.pods) + len(delta.pods)
        self._looks_anew = pods >= PIECES_FROM if full else phase > 0 and self._looks_anew
        applying = partial(self._apply, delta, full=full)
        gathered, has_memory = await self._run(applying, is_long=full and self._looks_anew)
        await self._not_understood.look(delta, self._state, anew=self._gatherer.anew)
        commands = await self._decide(now)
        self.deciding = commands.next_step in _HALFWAY
        outcomes = await self._act(commands.actions)
        self._failure = self._failure or ending_error(commands.actions, outcomes.results)
        result = absorb(self._state, commands, outcomes, now)
        await self._record(now, phase, gathered, commands, outcomes, result, full=full, has_memory=has_memory)
        await self._events.emit_all(map(event_of, (*commands.events, *result.events)))
        failed = await self._writer.write(result.writes)
        self._gatherer.capacity.note_writes(self._writer.written, failed)
        self._has_acted |= has_acted(self._state, commands.actions, outcomes.results, now)
        self._has_acted |= request_processed(self._state, result.writes, failed)
        await self._write_documents(result, now)
        if commands.answers is not None:
            self._answers.answer(commands.answers, self._state)
        self._answers.show_sizes(self._state)
        if self._actor.bugs:
            raise self._actor.bugs[0]
        return replace(commands, next_step="scale_up") if result.replan else commands

    async def _write_documents(self, result: Result, now: Instant) -> None:
        if result.status is not None:
            await self._status.write(result.status, now)
        await self._status.keep_learned(result.learned, now=self._gatherer.config_maps.has_read_learned)

    async def _act(self, actions: Sequence[Action]) -> Outcomes:
        state = self._state
        limit = state.settings.max_bulk_soft_taint_time if state.step in {"scale_down", "simulate"} else None
        if self._taint_latency is None:
            return await self._actor.act(actions, soft_taint_time=limit)
        begun = self._taint_latency.expect(actions)
        outcomes = await self._actor.act(actions, soft_taint_time=limit)
        latency = await self._taint_latency.measure(begun, actions, outcomes)
        return outcomes if latency is None else replace(outcomes, taint_latency=latency)

    async def _decide(self, now: Instant) -> Commands:
        state = self._state
        packs = packs_all_groups(state.settings.expander) and bool(state.pending or state.intents)
        return await self._run(partial(decide, state, now), is_long=packs or self._looks_anew)

    async def _run(self, work: Callable[[], T], *, is_long: bool) -> T:
        """Run work on the state: what may take long in another thread, where there is one."""
        if self._offload is None or not is_long:
            return work()
        self.deciding = True
        try:
            return await self._offload(work)
        finally:
            self.deciding = False

    def _apply(self, delta: Delta, *, full: bool) -> tuple[bytes | Iterator[bytes], bool]:
        """Return what the record of this step says of the state; in pieces where it is everything; and whether it has the memory."""
        self._state.apply(delta, keys=self._gatherer.pod_keys())
        self._since_memory = 0 if full else self._since_memory + 1
        if not full:
            has_memory = delta.step == "update" and self._since_memory >= CHECKPOINT_EVERY
            if has_memory:
                self._since_memory = 0
                delta = replace(delta, checkpoint=checkpoint_of(self._state))
            return encode_delta(delta), has_memory
        return start_from_record(self._state), False

    async def _record(
        self,
        now: Instant,
        phase: int,
        gathered: bytes | Iterator[bytes],
        commands: Commands,
        outcomes: Outcomes,
        result: Result,
        *,
        full: bool,
        has_memory: bool,
    ) -> None:
        reasons = worded_as_advice((*commands.reasons, *result.reasons))
        changed = self._changed_reasons.of(reasons, begins=phase == 0)
        new = reasons if full else changed
        record = Record(
            loop=LOOP,
            tick=self._ticks,
            now=now,
            phase=phase,
            full=full,
            has_memory=has_memory,
            state=msgspec.Raw(gathered if isinstance(gathered, bytes) else b"{}"),
            commands=msgspec.Raw(encode_commands(commands)),
            outcomes=msgspec.Raw(encode_outcomes(outcomes)),
            result=msgspec.Raw(encode_result(result)),
            reasons=new,
            repeated=len(reasons) - len(new),
            figures=figures_of(self._state, now) if phase == 0 or commands.actions else (),
        )
        self._unchanged.note(record, commands, outcomes, result)
        if isinstance(gathered, bytes):
            self._recorder.write(record)
        else:
            await in_turns(self._recorder.write_in_pieces(record, gathered), self._clock)
