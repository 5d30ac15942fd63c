"""Alignment of histograms before summing: the older reference moves to the younger.

Upstream moves them while it adds them up, which changes the histograms that are added; here it is
done before, so that adding up changes nothing. Upstream adds the aggregates of live pods in random
order, and those of checkpoints last. So within a few passes each live one has been added after the
youngest of them and is moved; here that is done at once.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np

from kubetide.vertical.recommender.usage.aggregates import Aggregates
from kubetide.vertical.recommender.usage.histograms import NEVER, Histograms


def align(aggregates: Aggregates, several: Sequence[tuple[int, ...]], loaded: Container[int]) -> None:
    """Align the references of rows to be summed: two or more in each entry.

    Args:
        loaded: The rows that checkpoints were loaded into.
    """
    if not several:
        return
    lengths = np.fromiter(map(len, several), np.int64, len(several))
    sources = np.fromiter((row for one in several for row in one), np.int64, int(lengths.sum()))
    begins = np.cumsum(lengths) - lengths
    for histograms in (aggregates.cpu, aggregates.memory):
        references = histograms.reference[sources]
        unequal = references != np.repeat(references[begins], lengths)
        if unequal.any():
            cells = np.unique(np.repeat(np.arange(len(several)), lengths)[unequal])
            for cell in cells.tolist():
                _align(histograms, several[cell], loaded)


def _align(histograms: Histograms, rows: tuple[int, ...], loaded: Container[int]) -> None:
    live = [row for row in rows if row not in loaded]
    live.sort(key=lambda row: int(histograms.reference[row]), reverse=True)
    sum_reference = Histograms(histograms.buckets, histograms.half_life, 1)
    one = np.zeros(1, np.int64)
    for row in (*live, *(row for row in rows if row in loaded)):
        reference = int(histograms.reference[row])
        reached = int(sum_reference.reference[0])
        if reached < reference:
            sum_reference.shift(one, np.array([reference]))
        elif reference < reached and reached != NEVER:
            histograms.shift(np.array([row]), np.array([reached]))
