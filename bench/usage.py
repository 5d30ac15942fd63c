"""The resource usage of a benchmark's process."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypedDict

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Usage(TypedDict):
    """The resources that a process has used so far."""

    cpu_s: float
    rss_mib: float


def usage_of(pid: int) -> Usage:
    """CPU and memory of a process (Linux: proc(5))."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    return Usage(cpu_s=ticks / os.sysconf("SC_CLK_TCK"), rss_mib=int(fields[21]) * _PAGE_BYTES / (1 << 20))
