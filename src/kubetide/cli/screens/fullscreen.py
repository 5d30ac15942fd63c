"""Takes the whole terminal for a view, or not at all."""

from __future__ import annotations

import signal

from rich.live import Live

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start_fullscreen(live: Live) -> None:
    """Start the view; a signal that would end the process meanwhile comes once it can be left again."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        try:
            live.start(refresh=True)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
    except BaseException:  # no exit follows an entry that failed
        live.stop()
        raise
