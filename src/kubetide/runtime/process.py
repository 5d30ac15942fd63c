"""Settings that a process makes once at its start."""

from __future__ import annotations

import ctypes
import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

# Of mallopt(3), which glibc has.
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
_GIVEN_BACK = 64 * 1024


def tune_gc(*, most_new: int = 100_000) -> None:
    """Make the cyclic garbage collector run less often: after so many new objects.

    A cluster is a large heap of dicts without cycles. The default thresholds walk it again and
    again while it grows, which more than doubles the cost of writing objects.
    """
    if gc.get_freeze_count():
        gc.collect()  # of the run before this one; what modules leave behind is not worth a walk over them
    gc.freeze()
    gc.set_threshold(most_new, 50, 100)


def trim_freed_memory() -> None:
    """Make freed buffers of 64 KiB and more return to the system at once.

    glibc raises its own limit, from 128 KiB to up to 32 MiB, with each such buffer that is freed, and then keeps as
    much free memory as twice that: beside a big cluster's samples and records tens of megabytes. A limit that is set
    stays. Where there is another C library nothing is done.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_M_MMAP_THRESHOLD, _GIVEN_BACK)
    mallopt(_M_TRIM_THRESHOLD, _GIVEN_BACK)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Make SIGTERM, and SIGHUP of a closed terminal, end the block as Ctrl-C does.

    A signal that this process was started to ignore stays ignored: SIGHUP under ``nohup``, SIGINT of what a script
    starts in the background. Outside of the main thread, which alone may handle signals, nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {
        number: signal.signal(number, _interrupt)
        for number in (signal.SIGTERM, signal.SIGHUP)
        if signal.getsignal(number) is signal.SIG_DFL
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        raise KeyboardInterrupt  # raised again it would be ignored, and nothing but SIGKILL would end the process
    signal.raise_signal(signal.SIGINT)
