"""The report of a run: one HTML file that needs nothing else, not even a network."""

from __future__ import annotations

from kubetide.simulate.report.page import render_page, write_report
from kubetide.simulate.report.series import (
    MOST_MARKS,
    Json,
    bucket_size,
    epoch_seconds,
    lasts,
    lost_minutes,
    mark_data,
    peaks,
    times_of,
)

__all__ = [
    "MOST_MARKS",
    "Json",
    "bucket_size",
    "epoch_seconds",
    "lasts",
    "lost_minutes",
    "mark_data",
    "peaks",
    "render_page",
    "times_of",
    "write_report",
]
