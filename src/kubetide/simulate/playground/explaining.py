"""Explanations of a playground from its records: ``kubetide explain load web`` and ``fault stock-out``."""

from __future__ import annotations

from typing import Final

import msgspec

from kubetide.loop import Explainer, Explaining
from kubetide.simulate.playground.reasons import VOCABULARY, until_words
from kubetide.simulate.playground.state import ABOUT, Change, State, changed
from kubetide.units.time import Instant, format_rfc3339

NAME: Final = "playground"
"""What its records are called."""


class Asked(msgspec.Struct, frozen=True):
    """The content of a record: the state before, and the change."""

    state: State
    change: Change


class PlaygroundCore:
    """Applies recorded changes; every record of a playground holds the whole state."""

    def __init__(self) -> None:
        self.state = State()
        self._change: Change | None = None

    def apply(self, delta: bytes, *, full: bool) -> None:  # noqa: ARG002  each holds everything
        """Apply the state before a change, and the change."""
        asked = msgspec.json.decode(delta, type=Asked)
        self.state, self._change = asked.state, asked.change

    def decide(self, now: Instant) -> bytes:  # noqa: ARG002  the protocol's arguments
        """Return the state after the change."""
        if self._change is not None:
            self.state, self._change = changed(self.state, self._change), None
        return msgspec.json.encode(self.state)

    def absorb(self, outcomes: bytes, now: Instant) -> bytes:  # noqa: ARG002  nothing can fail any more
        """Return nothing: a change has no outcome of its own."""
        return b"{}"


def _load_lines(core: PlaygroundCore, subject: str, now: Instant, view: str) -> list[str]:  # noqa: ARG001
    if subject not in core.state.services:
        raise KeyError(subject)
    requests = core.state.loads.get(subject)
    if requests is None:
        return ["Its load is the scenario's."]
    return [f"Its load is set to {requests:g} requests/s, in the place of the scenario's."]


def _fault_lines(core: PlaygroundCore, subject: str, now: Instant, view: str) -> list[str]:  # noqa: ARG001
    lines = [f"{subject}: {ABOUT[subject]}."]
    found = [one for one in core.state.faults if one.kind == subject]
    for one in found:
        often = "" if one.probability >= 1 else f", with probability {one.probability:g}"
        lines.append(f"On for {one.where} since {format_rfc3339(one.start)}, {until_words(one)}{often}.")
    return lines if found else [*lines, "It is not injected at this time."]


EXPLAINING: Final = Explaining(
    NAME,
    PlaygroundCore,
    VOCABULARY,
    (
        Explainer("load", _load_lines, lambda core: list(core.state.services), namespaced=True),
        Explainer("fault", _fault_lines, lambda core: list(ABOUT)),  # noqa: ARG005  the same in each
    ),
)
