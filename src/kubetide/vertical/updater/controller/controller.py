"""The updater's controller: a tick gathers, decides, acts and records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from kubetide.acting import EventWriter
from kubetide.explain.records import Record, Recorder
from kubetide.loop import BaseLoop
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.plan.board import Board
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster, as_remote
from kubetide.units.time import ZERO, Duration, Instant, after, milliseconds, minutes, seconds
from kubetide.vertical.resources.boost import is_boosted
from kubetide.vertical.series import Steps
from kubetide.vertical.updater.controller.act import Actor
from kubetide.vertical.updater.controller.gather import Gatherer
from kubetide.vertical.updater.controller.notices import LeaseNotice
from kubetide.vertical.updater.core import (
    Dialogue,
    encode_commands,
    encode_delta,
    encode_outcomes,
    encode_result,
)
from kubetide.vertical.updater.decide import deciding
from kubetide.vertical.updater.decision import Command, Outcome, Result
from kubetide.vertical.updater.events import COMPONENT
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import State
from kubetide.watching import Caches, Informer, holds_of

LOOP = "updater"

NO_NODE_LOOP = (
    "updater: --provision-before-eviction needs the loop nodes in the same process; "
    "without it pods are evicted whether or not a node has the capacity for their replacements"
)

_RESYNC = minutes(10)
"""How long the end of start-up boosts waits for a change of a pod."""
_LOOK = seconds(5)
"""So often it is looked whether a pod with a boost has changed."""


class UpdaterController(BaseLoop):
    """Evicts and resizes pods, as upstream's VPA updater does."""

    name = LOOP
    ticks_at_once = False
    """The first loop comes an interval after the caches are there, as upstream's."""

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        recorder: Recorder,
        settings: Settings,
        *,
        caches: Caches,
        board: Board | None = None,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the controller; nothing is asked before the first tick.

        Args:
            caches: Shared with other loops; the process updates them.
            board: Where larger replacements of pods are announced, and capacity for them is answered.
            warn: Takes a sentence that a person must see.
        """
        super().__init__()
        self._clock, self._recorder = clock, recorder
        self._state = State(settings)
        self._remote = as_remote(cluster) is not None
        self._board, self._warn, self._has_warned = board or Board(), warn, False
        self._gatherer = Gatherer(cluster, clock, caches, settings, holds=self._holds, board=self._board)
        events = EventWriter(cluster, clock, COMPONENT)
        self._actor = Actor(cluster, clock, events, uid_of=self._uid_of)
        self._gatherer.pods.on_change(self._heard)
        self._lease_notice = LeaseNotice(warn)
        self._boosted = True
        self._unboost_at, self._looked_at = Instant(0), Instant(0)
        self._tick, self._whole = 0, False
        self.result = Result()
        """What the last loop came to."""
        self.ended: Result | None = None
        """What a loop came to whose last record is being written; None with its other records."""
        self.ends_boosts = False
        """Whether that loop only ends start-up boosts."""
        self.steps = Steps(clock)
        """How long the parts of the last loop took."""

    @property
    def period(self) -> Duration:
        """The time between two loops."""
        return self._state.settings.updater_interval

    @property
    def holds(self) -> Sequence[str]:
        """Why the last loop changed nothing."""
        return self._state.holds

    @property
    def state(self) -> State:
        """What the last loop was decided from; for explaining, not for changing."""
        return self._state

    async def synced(self) -> None:
        """Return once the pods are there, and every other kind is or was refused."""
        await self._gatherer.synced()

    def next_wake(self) -> Instant | None:
        """Return when it is to be looked for start-up boosts that are over; None without the gate."""
        settings = self._state.settings
        if not settings.gates.cpu_startup_boost or settings.is_1_8_0:
            return None
        look = after(self._looked_at, _LOOK)
        return look if self._boosted else min(look, self._unboost_at)

    async def wake(self) -> None:
        """End start-up boosts whose time is up, or of whose pods one has changed."""
        self._looked_at = self._clock.now()
        if not self._boosted and self._looked_at < self._unboost_at:
            return
        # Tried again soon where it fails.
        self._boosted, self._unboost_at = False, after(self._looked_at, _LOOK)
        result = await self._play(boosts_only=True)
        # A moment later: the time must be over, not just reached.
        due, resync = result.next_unboost, after(self._clock.now(), _RESYNC)
        self._unboost_at = resync if due is None else min(after(due, milliseconds(1)), resync)

    def start_anew(self) -> None:
        """Record the whole state with the next loop: what a failed one gathered stands in no record."""
        self._whole = True

    async def close(self) -> None:
        """Wait for no write any longer."""
        await self._actor.close()

    def _heard(self, _key: Key, _old: Pod | None, new: Pod | None) -> None:
        if new is not None and is_boosted(new):
            self._boosted = True

    async def tick(self) -> None:
        """Gather, decide, act and record once."""
        self.result = await self._play(boosts_only=False)
        self._lease_notice.note(self.result)
        self._board.replacements = tuple(self.result.replacements)

    async def _play(self, *, boosts_only: bool) -> Result:
        self.steps.begin()
        self.ended, self.ends_boosts = None, boosts_only
        # Only whole loops take outcomes in: they look at all pods, of which one may be answered and not yet seen.
        late = self._actor.late(unanswered_only=boosts_only)
        waits = None if boosts_only else self._replacement_waits()
        delta = await self._gatherer.gather(
            self._state, late, replacement_waits=waits, boosts_only=boosts_only
        )
        now = self._clock.now()
        self._state.apply(delta)
        self.steps.done("ListPods")
        self._tick += 1
        full = self._recorder.wants_full(LOOP) or self._whole
        self._whole = False
        gathered = encode_delta(self._state.dump() if full else delta)
        filling = Result()
        dialogue = Dialogue(deciding(self._state, now, filling))
        await self._rest(dialogue)
        phase = told = 0
        while dialogue.command is not None:
            command = dialogue.command
            outcome = await self._actor.carry_out(command)
            dialogue.answer(outcome)
            await self._rest(dialogue)
            self._note_end(dialogue.result)
            self._record(now, phase, gathered, command, outcome, dialogue.result, full=full)
            gathered, full, phase = b"{}", False, phase + 1
            # At once: the rate limit may stretch a loop over a minute.
            told = await self._tell(filling, told)
        result = dialogue.result
        assert result is not None
        if phase == 0:
            self._note_end(result)
            self._record(now, 0, gathered, None, None, result, full=full)
        await self._tell(result, told)
        return result

    def _replacement_waits(self) -> Mapping[str, str] | None:
        """Return what the node loop says of the replacements that were announced; None where evictions do not wait for it."""
        if not self._state.settings.provision_before_eviction:
            return None
        if self._board.answers_replacements:
            return dict(self._board.replacement_waits)
        if not self._has_warned:
            self._has_warned = True
            self._warn(NO_NODE_LOOP)
        return None

    async def _tell(self, result: Result, told: int) -> int:
        """Write the events that are new; return how many have been written."""
        await self._actor.tell(result.events[told:])
        return len(result.events)

    def _note_end(self, result: Result | None) -> None:
        if result is not None:
            self.steps.done("EvictPods")
            self.ended = result

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
        return holds_of(pods, self._clock.now(), self._state.settings, may_be_old=self._remote)

    def _uid_of(self, kind: str, key: Key) -> str:
        known: Pod | Any = self._state.pods.get(key) if kind == "Pod" else self._state.vpas.get(key)
        return known.metadata.uid if known is not None else ""
