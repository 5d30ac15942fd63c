"""What a process sets once at its start."""

from __future__ import annotations

import gc


def tune_gc() -> None:
    """Makes the cyclic garbage collector run seldom.

    A cluster is a large heap of dicts without cycles. The default thresholds walk it again and
    again while it grows, which more than doubles the cost of writing objects.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)
