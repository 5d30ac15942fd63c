"""Virtual time: an asyncio event loop that jumps to its next timer instead of waiting.

Everything of asyncio that needs no thread and no socket works on it (``sleep``, ``timeout``,
``TaskGroup``, ``Queue``, ``Event``); opening a socket or a thread is an error, because time would
run ahead of their answers.

How it differs from the stock loop, and why:

* Time is an integer number of nanoseconds from 0. Loop time that starts at the Unix epoch has no
  float bits left below a microsecond, and sums of floats drift.
* Timers that are due at the same instant fire in the order in which they were set. The stock heap
  orders by deadline alone, so that one more timer shuffles the others.
* When no callback is ready and no timer is set, nothing can ever wake: that raises ``Stalled``
  instead of hanging.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextvars import Context, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from operator import attrgetter
from typing import Any, NoReturn, TypeVarTuple

import msgspec

from kubetide.ports.errors import KubetideError, NoSocketsError

_Args = TypeVarTuple("_Args")

_MOST_NAMED = 10
_FEWEST_TO_SWEEP = 100


class Stalled(KubetideError):
    """Tasks wait, but no timer or task can wake them."""


class _Soon(msgspec.Struct, eq=False):
    """What is called back in the next iteration: a Handle that costs no call of Python to make, and none to run."""

    callback: Callable[..., object]
    args: tuple[Any, ...]
    context: Context
    dropped: bool = False

    def cancel(self) -> None:
        """Drop the call."""
        self.dropped = True

    def cancelled(self) -> bool:
        """Return whether the call was dropped."""
        return self.dropped


class _Later(_Soon):
    """What is called back at a time: a TimerHandle, as ``_Soon``."""

    at_ns: int = 0
    note_cancelled: Callable[[], None] = lambda: None

    def cancel(self) -> None:
        """Drop the call."""
        if not self.dropped:
            self.dropped = True
            self.note_cancelled()

    def when(self) -> float:
        """Return the loop's time of the call."""
        return self.at_ns / 1e9


_Timer = _Later | asyncio.Future[None]
"""What a timer wakes: a callback, or a task that sleeps."""
_Ready = asyncio.Handle | _Soon | asyncio.Future[None]


class IntegerTimeLoop(asyncio.BaseEventLoop):
    """An event loop whose time is a count of nanoseconds that moves only from timer to timer.

    It builds on two private names of ``BaseEventLoop`` (``_ready``, ``_stopping``); those that inherit replace
    ``_run_once``. Tests hold them for each Python.
    """

    _ready: deque[_Ready]
    _stopping: bool
    _is_whole = False

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._now_ns = 0
        self._shut = False
        self.time_ns: Callable[[], int] = partial(attrgetter("_now_ns"), self)
        """Returns virtual nanoseconds since the loop was created; it is asked for a hundred times a tick."""
        self._timers: list[tuple[int, int, _Timer]] = []
        self._timers_set = 0
        self._timers_cancelled = 0
        self._is_whole = True

    def time(self) -> float:
        """Virtual seconds since the loop was created."""
        return self._now_ns / 1e9

    def call_soon(
        self, callback: Callable[[*_Args], object], *args: *_Args, context: Context | None = None
    ) -> asyncio.Handle:
        """Call back in the next iteration; like the stock loop, without its debug checks."""
        if self._shut:
            raise RuntimeError("Event loop is closed")
        handle = _Soon(callback, args, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle  # type: ignore[return-value]  # it has what callers use of a Handle

    async def sleep_ns(self, duration: int) -> None:
        """Return after that many nanoseconds, more than 0; like ``asyncio.sleep`` without a handle or rounding."""
        slept = self.create_future()
        self._timers_set += 1
        heappush(self._timers, (self._now_ns + duration, self._timers_set, slept))
        try:
            await slept
        finally:
            if slept.cancelled():
                self._note_cancelled()

    def call_later(
        self,
        delay: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back ``delay`` seconds from now, rounded to whole nanoseconds."""
        return self._set_timer(self._now_ns + round(delay * 1e9), callback, args, context)

    def call_at(
        self,
        when: float,
        callback: Callable[[*_Args], object],
        *args: *_Args,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call back at loop time ``when``, rounded to whole nanoseconds."""
        return self._set_timer(round(when * 1e9), callback, args, context)

    def _set_timer(
        self, when_ns: int, callback: Callable[..., object], args: tuple[Any, ...], context: Context | None
    ) -> asyncio.TimerHandle:
        if self._shut:
            raise RuntimeError("Event loop is closed")
        found = copy_context() if context is None else context
        handle = _Later(callback, args, found, at_ns=when_ns, note_cancelled=self._note_cancelled)
        self._timers_set += 1
        heappush(self._timers, (when_ns, self._timers_set, handle))
        return handle  # type: ignore[return-value]  # it has what callers use of a TimerHandle

    def _note_cancelled(self) -> None:
        # A timer that has fired may be cancelled too, so this counts some that are not in the heap:
        # a sweep then comes sooner than needed, which is harmless.
        self._timers_cancelled += 1
        if self._timers_cancelled > _FEWEST_TO_SWEEP and 2 * self._timers_cancelled > len(self._timers):
            self._timers = [timer for timer in self._timers if not timer[2].cancelled()]
            heapify(self._timers)
            self._timers_cancelled = 0

    def _next_due(self) -> int | None:
        """Return when the next timer is due, None if no timer is set."""
        timers = self._timers
        while timers and timers[0][2].cancelled():
            heappop(timers)
        return timers[0][0] if timers else None

    def _move_to(self, now: int) -> None:
        """Move time and make all timers that are due ready; time never goes back."""
        self._now_ns = now = max(self._now_ns, now)
        timers = self._timers
        while timers and timers[0][0] <= now:
            handle = heappop(timers)[2]
            if not handle.cancelled():
                self._ready.append(handle)

    def _run_ready(self) -> None:
        # Callbacks that these callbacks add have their turn in the next round, as in the stock loop.
        ready = self._ready
        for _ in range(len(ready)):
            handle = ready.popleft()
            if isinstance(handle, _Soon):
                if not handle.dropped:
                    try:
                        handle.context.run(handle.callback, *handle.args)
                    except (SystemExit, KeyboardInterrupt):
                        raise
                    except BaseException as error:  # noqa: BLE001  as the stock loop: it goes on with the others
                        self._report(handle, error)
            elif isinstance(handle, asyncio.Future):
                if not handle.done():
                    handle.set_result(None)
            elif not handle.cancelled():
                handle._run()  # noqa: SLF001  (the loop is the other half of a Handle)

    def _report(self, handle: _Soon, error: BaseException) -> None:
        message = f"Exception in callback {handle.callback!r}"
        self.call_exception_handler({"message": message, "exception": error, "handle": handle})

    def close(self) -> None:
        """Close the loop and drop its timers."""
        self._shut = True
        super().close()
        self._timers.clear()

    def __del__(self) -> None:
        # Of a loop whose making was interrupted the stock one would close what is not there, and complain on stderr.
        if self._is_whole:
            super().__del__()


class VirtualLoop(IntegerTimeLoop):
    """An event loop in virtual time; built by ``runtime.clock.run_virtual``."""

    def _run_once(self) -> None:
        if not self._ready and not self._stopping:
            due = self._next_due()
            if due is None:
                raise Stalled(self._who_waits())
            self._move_to(due)
        self._run_ready()

    def _who_waits(self) -> str:
        tasks = sorted((task for task in asyncio.all_tasks(self) if not task.done()), key=_place)
        named = "; ".join(_place(task) for task in tasks[:_MOST_NAMED])
        more = f"; and {len(tasks) - _MOST_NAMED} more" if len(tasks) > _MOST_NAMED else ""
        return (
            f"nothing will ever wake: at {self.time():g} s of virtual time {len(tasks)} task(s) wait "
            f"and no timer is set: {named}{more}"
        )

    def _process_events(self, _events: list[Any]) -> None:
        """Have nothing to do: there is no selector."""

    def _write_to_self(self) -> None:
        """Have nothing to do: this loop never blocks, so it needs no waking (a signal handler calls this)."""

    def run_in_executor(self, _executor: object, func: object, *_args: object) -> NoReturn:
        """Refuse: a thread would answer at another virtual time in each run."""
        raise RuntimeError(
            f"virtual time has no threads: {func!r} must run on the event loop, or in real time"
        )

    def _no_sockets(self, *_args: object, **_named: object) -> NoReturn:
        raise NoSocketsError("virtual time has no sockets: use run_real or run_paced to listen or to connect")

    add_reader = _no_sockets
    add_writer = _no_sockets
    create_connection = _no_sockets
    create_server = _no_sockets
    getaddrinfo = _no_sockets
    sock_connect = _no_sockets


def _place(task: asyncio.Task[Any]) -> str:
    """Return a task's name and the source line where its innermost frame waits."""
    frames = task.get_stack(limit=1)
    if not frames:
        return task.get_name()
    code = frames[0].f_code
    return f"{task.get_name()} in {code.co_qualname} ({code.co_filename.rsplit('/', 1)[-1]}:{frames[0].f_lineno})"
