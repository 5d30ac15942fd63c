"""What ``kubetide run`` says: a line a decision on standard output, warnings on standard error."""

from __future__ import annotations

from typing import Literal

import click
import msgspec

from kubetide.explain.records import Recorder
from kubetide.ports.clock import Clock
from kubetide.runtime.permissions import with_hint
from kubetide.simulate.outcome.decisions import decision_line, why_lines
from kubetide.simulate.outcome.marks import MarkingRecorder
from kubetide.simulate.outcome.table import printable
from kubetide.simulate.outcome.timeline import Mark
from kubetide.units.time import Instant, between, format_rfc3339, minutes

_AGAIN = minutes(10)
"""Advice that nobody follows, and what is refused, come anew in each tick; so long they are not said again."""


class ConsoleLog:
    """For people: as ``kubetide up`` prints."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str, str], Instant] = {}
        self._clock: Clock | None = None

    def begin(self, clock: Clock) -> None:
        """Take the clock of the run."""
        self._clock = clock

    def recording(self, inner: Recorder) -> Recorder:
        """Return a recorder that prints each decision and hands all records on."""
        return MarkingRecorder(inner, self._decision)

    def tell(self, text: str) -> None:
        """Say what a person may want to know."""
        _print(printable(text))

    def warn(self, text: str) -> None:
        """Say what a person must see."""
        _print(f"kubetide: {printable(text)}", err=True)

    def show(self, mark: Mark) -> None:
        """Print a decision."""
        _print(with_hint(decision_line(mark), (mark.loop,)))

    def _decision(self, mark: Mark) -> None:
        if mark.fruitless and self._was_said(mark):
            return
        self.show(mark)

    def _was_said(self, mark: Mark) -> bool:
        """Return whether it was said of late; if not, it is from now on."""
        self._said = {key: at for key, at in self._said.items() if between(at, mark.at) < _AGAIN}
        key = (mark.loop, mark.subject, mark.title)
        if key in self._said:
            return True
        self._said[key] = mark.at
        return False


class JsonLog(ConsoleLog):
    """For machines: one JSON object a line, all on standard output."""

    def tell(self, text: str) -> None:
        """Say what a person may want to know."""
        self._line("info", text)

    def warn(self, text: str) -> None:
        """Say what a person must see."""
        self._line("warning", text)

    def show(self, mark: Mark) -> None:
        """Print a decision."""
        self._line(
            "info",
            with_hint(mark.title, (mark.loop,)),
            at=mark.at,
            loop=mark.loop,
            subject=mark.subject,
            why=list(why_lines(mark)),
        )

    def _line(self, level: str, text: str, *, at: Instant | None = None, **fields: object) -> None:
        now = self._clock.now() if at is None and self._clock is not None else at
        time = {} if now is None else {"time": format_rfc3339(now)}
        _print(msgspec.json.encode({**time, "level": level, "message": text, **fields}).decode())


def _print(text: str, *, err: bool = False) -> None:
    """Print a line; one that cannot be written, as on a full disk, is lost, and stops no loop.

    Raises: BrokenPipeError where nobody reads any more: the process ends, as programs do.
    """
    try:
        click.echo(text, err=err)
    except BrokenPipeError:
        raise
    except OSError:
        return


def log_of(form: Literal["console", "json"]) -> ConsoleLog:
    """Return what a run's ``logFormat`` asks for."""
    return JsonLog() if form == "json" else ConsoleLog()
