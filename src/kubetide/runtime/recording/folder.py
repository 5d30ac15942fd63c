"""The folder that a run writes to: one run at a time, without files of an earlier one.

A run holds a lock on ``records/lock`` for as long as it lives; the operating system gives it back
however the process ends.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kubetide.runtime.recording.records import RecordError

REPORT, SUMMARY, TIMELINE = "report.html", "summary.json", "timeline.json"
RESULTS = (REPORT, SUMMARY, TIMELINE)
"""What a run leaves beside its records."""

_TRIES = 2_000


class FolderNotWritable(RecordError):
    """Nothing can be written to a run's folder."""


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Lock the folder for one run, and delete the results of an earlier run.

    Raises: RecordError where another run holds it; FolderNotWritable.
    """
    lock = _lock_of(folder)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise FolderNotWritable(
            f"cannot write under {folder}: {error.strerror}; choose another folder with --out"
        ) from error
    try:
        _hold(file, folder)
        _remove_results(folder)
        yield
    finally:
        os.close(file)


def _remove_results(folder: Path) -> None:
    for name in RESULTS:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise RecordError(
                f"cannot replace {folder / name}: {error.strerror}; choose another folder with --out"
            ) from error


def _hold(file: int, folder: Path) -> None:
    # Who only asks whether a run is going on has the lock for a moment too; a run keeps it.
    for _ in range(_TRIES):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.sched_yield()
        else:
            return
    raise RecordError(
        f"another run is writing to {folder}; wait for its end, or choose another folder with --out"
    )


def is_running(folder: Path) -> bool:
    """Return whether a run has locked the folder."""
    try:
        file = os.open(_lock_of(folder), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file under another name, and rename it once it is whole. Raises OSError."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        write(partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write the content of a file under another name, and rename it once it is whole. Raises OSError."""
    write_whole(path, lambda partial: partial.write_bytes(content))


def _lock_of(folder: Path) -> Path:
    return folder / "records" / "lock"
