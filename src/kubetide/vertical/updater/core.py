"""The updater's core in bytes, for the recorder and for replay (``explain.records.Core``).

A loop is a dialogue, so its record has a line for each command: the first holds what was gathered, the last what
the loop came to.
"""

from __future__ import annotations

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.units.time import Instant
from kubetide.vertical.updater.decide import deciding
from kubetide.vertical.updater.decision import Command, Outcome, Pause, Result
from kubetide.vertical.updater.loop import Loop
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import Delta, State

_NOTHING = b"{}"

_encoder = msgspec.json.Encoder()
_deltas = msgspec.json.Decoder(Delta)
_outcomes = msgspec.json.Decoder(tuple[Outcome, ...])


def encode_delta(delta: Delta) -> bytes:
    return _encoder.encode(delta)


def encode_commands(command: Command | None) -> bytes:
    """Return the next command as a list of one, or an empty one at the loop's end."""
    return _encoder.encode(() if command is None else (command,))


def encode_outcomes(outcome: Outcome | None) -> bytes:
    return _encoder.encode(() if outcome is None else (outcome,))


def encode_result(result: Result | None) -> bytes:
    """Return the events of a loop that has ended; nothing of one that goes on."""
    if result is None:
        return _NOTHING
    found = {"events": result.events, "skipped": result.skipped}
    return _encoder.encode(found | ({"replacements": result.replacements} if result.replacements else {}))


class Dialogue:
    """A loop that is played step by step: ``command`` is the one to carry out next, None at its end.

    While ``is_paused`` other tasks may run before ``go_on``.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.command: Command | None = None
        self.result: Result | None = None
        self.is_paused = False
        self._step(None)

    def answer(self, outcome: Outcome) -> None:
        """Take in what came of the command."""
        self._step(outcome)

    def go_on(self) -> None:
        """End a pause."""
        self._step(Outcome(Instant(0)))

    def _step(self, outcome: Outcome | None) -> None:
        self.command, self.is_paused = None, False
        try:
            got = next(self._loop) if outcome is None else self._loop.send(outcome)
        except StopIteration as end:
            self.result = end.value
            return
        if isinstance(got, Pause):
            self.is_paused = True
        else:
            self.command = got


class UpdaterCore:
    """Decides again from recorded deltas; the same functions as in production."""

    def __init__(self, settings: Settings | None = None) -> None:
        self.state = State(settings)
        self.reasons: tuple[Reason, ...] = ()
        """Of the last whole loop."""
        self._dialogue: Dialogue | None = None

    def apply(self, delta: bytes, *, full: bool) -> None:
        """Take over gathered state; within a loop there is none, and some says that the loop before broke off."""
        if self._dialogue is not None and delta == _NOTHING:
            return
        self._dialogue = None
        read = _deltas.decode(delta)
        if full:
            self.state = State.from_full(read)
        else:
            self.state.apply(read)

    def decide(self, now: Instant) -> bytes:
        """Return the next command."""
        if self._dialogue is None:
            self._dialogue = Dialogue(deciding(self.state, now))
            _hurry(self._dialogue)
        return encode_commands(self._dialogue.command)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:  # noqa: ARG002  # each outcome says when it came
        """Take in what came of the command; return the events once the loop has ended."""
        dialogue = self._dialogue
        if dialogue is None:
            return encode_result(None)
        for outcome in _outcomes.decode(outcomes):
            dialogue.answer(outcome)
            _hurry(dialogue)
        if dialogue.command is None:
            self._dialogue = None
            if dialogue.result is not None and not self.state.boosts_only:
                self.reasons = tuple(dialogue.result.reasons)
        return encode_result(dialogue.result)

    def dump(self) -> bytes:
        """Return the whole state, memory included, as a full delta."""
        return encode_delta(self.state.dump())


def _hurry(dialogue: Dialogue) -> None:
    """Leave out the pauses."""
    while dialogue.is_paused:
        dialogue.go_on()
