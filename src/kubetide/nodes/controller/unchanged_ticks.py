"""Ticks that must have the result of the last one: they are recorded, but not computed again."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from kubetide.explain.records import Record, Recorder
from kubetide.nodes.core import encode_delta, encode_result
from kubetide.nodes.decide import with_documents
from kubetide.nodes.decision import Commands, Outcomes, Result
from kubetide.nodes.records.checkpoint import checkpoint_of
from kubetide.nodes.registry.quiet import is_quiet
from kubetide.nodes.registry.unchanged import is_on_time, note_unchanged, unchanged_until
from kubetide.nodes.state import Delta, State
from kubetide.ports.clock import Clock
from kubetide.units.time import Duration, Instant

_NOTHING = Delta()


class UnchangedTicks:
    """Holds the records of a tick without changes, decisions and messages, until a tick may differ.

    A tick is left out only when its delta says nothing, so all that it would have read is as it was; live and in
    virtual time alike. A replay decides each tick again, and must get the same bytes.
    """

    def __init__(self, state: State, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._until: Instant | None = None
        self._first: Record
        self._last: Record
        self._made: list[Record] | None = None

    def take(
        self, delta: Delta, now: Instant, recorder: Recorder, tick: int, *, has_memory: bool
    ) -> Result | None:
        """Record the tick that begins with this delta where its result equals the last one, and return that result.

        None where it may differ: then the caller must call ``noted`` with the result, and ``ended``. ``has_memory``:
        whether its first record is to have the memory.
        """
        state = self._state
        still = delta == _NOTHING and is_quiet(state, now)
        until, self._until = self._until, None
        self._made = [] if still else None
        if not still or until is None or now >= until or not is_on_time(state, now):
            return None
        if recorder.wants_full(self._first.loop):
            return None
        self._until = until
        state.phases.end("updateClusterState")
        state.step = "update"
        if has_memory:
            delta = replace(delta, checkpoint=checkpoint_of(state))
        gathered = msgspec.Raw(encode_delta(delta))
        recorder.write(replace(self._first, tick=tick, now=now, has_memory=has_memory, state=gathered))
        last = Delta(step="scale_down", elapsed=Duration(self._clock.now() - now))
        state.step = last.step
        state.phases.begin("findUnneeded")
        note_unchanged(state, now)
        state.phases.end("findUnneeded")
        result = with_documents(state, Result(), now)
        recorder.write(
            replace(
                self._last,
                tick=tick,
                now=now,
                state=msgspec.Raw(encode_delta(last)),
                result=msgspec.Raw(encode_result(result)),
            )
        )
        return result

    def note(self, record: Record, commands: Commands, outcomes: Outcomes, result: Result) -> None:
        """Note a step of the tick."""
        if self._made is None:
            return
        documents = replace(Result(), status=result.status, learned=result.learned)
        silent = not (
            record.full or record.reasons or commands.actions or commands.events or outcomes.results
        )
        if silent and not commands.answers and commands.wake_at is None and result == documents:
            # Figures and memory are as they were, and stand in the record of this tick.
            self._made.append(replace(record, has_memory=False, figures=()))
        else:
            self._made = None

    def ended(self, *, settled: bool) -> None:
        """Note that the tick has ended; ``settled``: no write is pending."""
        made, self._made, self._until = self._made, None, None
        steps = [] if made is None else [record.phase for record in made]
        if made is None or not settled or steps != [0, 1] or self._state.step != "scale_down":
            return
        self._first, self._last = made
        self._until = unchanged_until(self._state)
