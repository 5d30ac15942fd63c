"""A recorder that passes each written record to listeners."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable

from kubetide.explain.records import Record, Recorder
from kubetide.units.steps import Steps

Listener = Callable[[Record], None]


class ListeningRecorder:
    """Passes records on, and then to the listeners of their loop.

    A loop writes a record when a step of it is over, so what its controller shows is of that step.
    A listener that fails is not called any more, and never stops the loop.
    """

    def __init__(self, inner: Recorder, warn: Callable[[str], None]) -> None:
        self._inner = inner
        self._warn = warn
        self._listeners: dict[str, list[Listener]] = {}

    def listen(self, loop: str, listener: Listener) -> None:
        """Call ``listener`` with the loop's records, after earlier listeners."""
        self._listeners.setdefault(loop, []).append(listener)

    def wants_full(self, loop: str) -> bool:
        """Return whether the next record of the loop must hold the whole state."""
        return self._inner.wants_full(loop)

    def write(self, record: Record) -> None:
        """Pass the record on and call the listeners."""
        self._inner.write(record)
        self._call(record)

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        """Pass the record on and call the listeners."""
        yield from self._inner.write_in_pieces(record, state)
        self._call(record)

    def _call(self, record: Record) -> None:
        for listener in tuple(self._listeners.get(record.loop, ())):
            try:
                listener(record)
            except Exception:  # noqa: BLE001  the rim: a bug in counting is said once, and nothing is counted any more
                self._listeners[record.loop].remove(listener)
                self._warn(
                    f"the series of the {record.loop} loop stand still: {traceback.format_exc().strip()}"
                )
