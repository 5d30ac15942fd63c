"""The updater's controller: every interval it gathers, decides, acts and records."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from kubetide.acting import EventWriter
from kubetide.explain.records import Record, Recorder
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, as_remote
from kubetide.units.time import ZERO, Duration, Instant, minutes, to_seconds
from kubetide.vertical.boost import is_boosted
from kubetide.vertical.updater.controller.act import Actor
from kubetide.vertical.updater.controller.gather import Gatherer
from kubetide.vertical.updater.core import (
    Dialogue,
    encode_commands,
    encode_delta,
    encode_outcomes,
    encode_result,
)
from kubetide.vertical.updater.decide import deciding
from kubetide.vertical.updater.decision import Command, Key, Outcome, Result
from kubetide.vertical.updater.events import COMPONENT
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import State
from kubetide.watching import Caches, Informer, shrunken, too_old

LOOP = "updater"

_RESYNC = minutes(10)
"""How long the end of start-up boosts waits for a change of a pod."""


class UpdaterController:
    """Evicts and resizes pods, as upstream's VPA updater does."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        recorder: Recorder,
        settings: Settings,
        *,
        caches: Caches | None = None,
    ) -> None:
        """Prepare the controller; nothing is asked before ``run``.

        Args:
            caches: Shared with other loops, and run by whoever made them; None for caches of its own.
        """
        self._clock, self._recorder = clock, recorder
        self._state = State(settings)
        self._own_caches = Caches(cluster, clock) if caches is None else None
        shared = caches or self._own_caches
        assert shared is not None
        # A cache of the same process is never old, however quiet the cluster is.
        self._remote = as_remote(cluster) is not None
        self._gatherer = Gatherer(cluster, clock, shared, settings, holds=self._holds)
        events = EventWriter(cluster, clock, COMPONENT)
        self._actor = Actor(cluster, clock, events, uid_of=self._uid_of)
        self._turn = asyncio.Lock()
        self._boosted = asyncio.Event()
        self._tick = 0
        self.result = Result()
        """What the last loop came to."""
        self.bugs = 0
        """Loops that ended with a bug; the next one is tried."""
        self.last_failure = ""
        self.last_tick: Instant | None = None
        """When the last loop ended well; None before the first."""

    @property
    def state(self) -> State:
        """What the last loop was decided from; for explaining, not for changing."""
        return self._state

    async def run(self) -> None:
        """Keep the caches and loop every interval, the first time one interval after the caches are there."""
        async with asyncio.TaskGroup() as tasks:
            if self._own_caches is not None:
                tasks.create_task(self._own_caches.run())
            self._gatherer.pods.on_change(self._heard)
            await self._gatherer.synced()
            settings = self._state.settings
            if settings.gates.cpu_startup_boost and not settings.is_1_8_0:
                tasks.create_task(self._end_boosts())
            start, period, count = self._clock.now(), settings.updater_interval, 0
            while True:
                # From the start, so that loops do not drift; what was missed is not made up for.
                count = max(count + 1, (self._clock.now() - start) // period)
                await self._clock.sleep(Duration(start + count * period - self._clock.now()))
                await self._guarded()

    async def _end_boosts(self) -> None:
        """End start-up boosts when their time is up, or when a pod that has one changes."""
        while True:
            self._boosted.clear()
            result = await self._guarded(boosts_only=True)
            due = result.next_unboost if result is not None else None
            # A moment later: the time must be over, not just reached.
            wait = _RESYNC if due is None else Duration(max(due - self._clock.now(), 0) + 1_000_000)
            with suppress(TimeoutError):
                async with asyncio.timeout(to_seconds(min(wait, _RESYNC))):
                    await self._boosted.wait()

    def _heard(self, _key: Key, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and is_boosted(new):
            self._boosted.set()

    async def _guarded(self, *, boosts_only: bool = False) -> Result | None:
        try:
            return await self.tick(boosts_only=boosts_only)
        except Exception:  # noqa: BLE001  # the rim of the loop: counted, shown, and the next one is tried
            self.bugs += 1
            self.last_failure = traceback.format_exc()
            return None

    async def tick(self, *, boosts_only: bool = False) -> Result:
        """Gather, decide, act and record once; one loop at a time. The caches must be synced."""
        async with self._turn:
            delta = await self._gatherer.gather(self._state, boosts_only=boosts_only)
            now = self._clock.now()
            self._state.apply(delta)
            self._tick += 1
            full = self._recorder.wants_full(LOOP)
            gathered = encode_delta(self._state.dump() if full else delta)
            dialogue = Dialogue(deciding(self._state, now))
            await self._rest(dialogue)
            phase = 0
            while dialogue.command is not None:
                command = dialogue.command
                outcome = await self._actor.carry_out(command)
                dialogue.answer(outcome)
                await self._rest(dialogue)
                self._record(now, phase, gathered, command, outcome, dialogue.result, full=full)
                gathered, full, phase = b"{}", False, phase + 1
            result = dialogue.result
            assert result is not None
            if phase == 0:
                self._record(now, 0, gathered, None, None, result, full=full)
            await self._actor.tell(result.events)
            if not boosts_only:
                self.result = result
                self.last_tick = self._clock.now()
            return result

    async def _rest(self, dialogue: Dialogue) -> None:
        """Let other tasks run in the pauses of a loop over many pods."""
        while dialogue.is_paused:
            await self._clock.sleep(ZERO)
            dialogue.go_on()

    def _record(
        self,
        now: Instant,
        phase: int,
        gathered: bytes,
        command: Command | None,
        outcome: Outcome | None,
        result: Result | None,
        *,
        full: bool,
    ) -> None:
        self._recorder.write(
            Record(
                loop=LOOP,
                tick=self._tick,
                phase=phase,
                now=now,
                full=full,
                state=msgspec.Raw(gathered),
                commands=msgspec.Raw(encode_commands(command)),
                outcomes=msgspec.Raw(encode_outcomes(outcome)),
                result=msgspec.Raw(encode_result(result)),
                reasons=tuple(result.reasons) if result is not None else (),
            )
        )

    def _holds(self, pods: Informer[Any]) -> Sequence[str]:
        now, settings = self._clock.now(), self._state.settings
        old = too_old(pods, now, max_cache_age=settings.max_cache_age) if self._remote else ""
        lacking = shrunken(
            pods, now, max_relist_loss=settings.max_relist_loss, relist_hold=settings.relist_hold
        )
        return tuple(why for why in (old, lacking) if why)

    def _uid_of(self, kind: str, key: Key) -> str:
        known: Pod | Any = self._state.pods.get(key) if kind == "Pod" else self._state.vpas.get(key)
        return known.metadata.uid if known is not None else ""
