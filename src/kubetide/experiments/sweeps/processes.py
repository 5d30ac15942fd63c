"""Cells on this machine: as many processes as asked for, each running one cell at a time.

A process that dies (killed, out of memory) costs the time of its cell, which another one tries again. The pool of the
standard library ends every process when one dies, hence this one.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Final, Self

import msgspec

from kubetide.experiments.sweeps.cell import Outcome, run_cell

TRIES: Final = 3
"""How many processes a cell may cost before it counts as failed."""

_SPAWN: Final = multiprocessing.get_context("spawn")


class Processes:
    """A pool of processes. Use it as a context manager: leaving it ends them all."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def pids(self) -> list[int]:
        """The processes that are there."""
        return [worker.pid for worker in self._workers]

    def run(self, tasks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each task and its outcome, in the order in which they are done.

        No process waits for its next task: that is made while all are at work, and given before an outcome is handed on.
        """
        coming = iter(enumerate(tasks))
        ahead: deque[_Given] = deque()
        busy: dict[_Worker, _Given] = {}
        done: deque[tuple[int, bytes]] = deque()
        while True:
            while len(busy) < self._jobs and (given := ahead.popleft() if ahead else _next(coming)):
                worker = next((one for one in self._workers if one not in busy), None) or self._started()
                busy[worker] = given
                worker.give(given.task)
            while done:
                yield done.popleft()
            if not busy:
                return
            if not ahead and (given := _next(coming)):
                ahead.append(given)
            for worker in [one for one in busy if one in _ready(busy)]:
                given, outcome = busy.pop(worker), worker.outcome()
                if outcome is not None:
                    done.append((given.number, outcome))
                    continue
                self._workers.remove(worker)
                given.deaths += 1
                if given.deaths < TRIES:
                    ahead.appendleft(given)
                else:
                    done.append((given.number, msgspec.json.encode(Outcome(error=worker.died_of()))))

    def _started(self) -> _Worker:
        worker = _Worker()
        self._workers.append(worker)
        return worker


class _Given(msgspec.Struct):
    """A task on its way: how many processes have died of it."""

    number: int
    task: bytes
    deaths: int = 0


def _next(coming: Iterator[tuple[int, bytes]]) -> _Given | None:
    found = next(coming, None)
    return None if found is None else _Given(*found)


def _ready(busy: Iterable[_Worker]) -> set[_Worker]:
    by_handle = {handle: worker for worker in busy for handle in worker.handles}
    return {by_handle[handle] for handle in wait(list(by_handle))}


class _Worker:
    """One process and the pipe to it."""

    def __init__(self) -> None:
        self._pipe, theirs = _SPAWN.Pipe()
        self._process: BaseProcess = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        # Its end of the pipe is the process's alone, so that its death is the end of the pipe.
        theirs.close()

    @property
    def handles(self) -> tuple[Any, ...]:
        return self._pipe, self._process.sentinel

    @property
    def pid(self) -> int:
        return self._process.pid or 0

    def give(self, task: bytes) -> None:
        try:
            self._pipe.send_bytes(task)
        except OSError:
            # It is dead already; that is seen when its outcome is asked for.
            return

    def outcome(self) -> bytes | None:
        """Return what it sent, or None where it died."""
        try:
            return self._pipe.recv_bytes()
        except (EOFError, OSError):
            self.end()
            return None

    def died_of(self) -> str:
        code = self._process.exitcode or 0
        how = f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"with exit status {code}"
        return (
            f"{TRIES} processes that ran it died, the last {how}; "
            "where the machine is out of memory, run fewer at once with --jobs"
        )

    def end(self) -> None:
        self._pipe.close()
        self._process.join(0)
        if self._process.is_alive():
            self._process.kill()
        self._process.join()


def _serve(pipe: Connection) -> None:
    # Ctrl-C reaches all processes of a terminal; the one that started this one ends it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            pipe.send_bytes(run_cell(pipe.recv_bytes()))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            # Who asked has gone.
            return


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
