"""Numpy without threads of its own, for commands that print one answer and end."""

from __future__ import annotations

import os


def keep_numpy_single_threaded() -> None:
    """Let numpy start no threads when it is loaded: to start them takes longer than one answer. Call it before."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
