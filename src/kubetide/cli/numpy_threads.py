"""What makes a command quick that gives one answer and ends."""

from __future__ import annotations

import os


def without_threads() -> None:
    """Let numpy start no threads of its own when it is loaded: for one answer they cost more than they do."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
