"""``process_*``: CPU time, memory, open files and the start of the process.

Source: client_golang v1.23 (process collector), which component-base v0.36 registers in all of upstream's programs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from kubetide.units.exposition import Registry

_PROC: Final = Path("/proc")
_USER_TIME, _SYSTEM_TIME, _START, _VIRTUAL, _PAGES = 14, 15, 22, 23, 24
"""Numbers of fields of ``/proc/self/stat``, as proc(5) counts them."""
_FIRST_AFTER_NAME: Final = 3
_UNLIMITED: Final = float(1 << 64)
"""What upstream shows where there is no limit."""


def show_process(registry: Registry) -> None:
    """Add the series; on a system without ``/proc`` there are none."""
    if not (_PROC / "self/stat").exists():
        return
    import resource  # noqa: PLC0415  only Unix has it

    cpu = registry.counter(
        "process_cpu_seconds_total", "CPU time that the process took, user's and system's."
    )
    files = registry.gauge("process_open_fds", "Files and connections that are open.")
    most_files = registry.gauge("process_max_fds", "Most that may be open.")
    virtual = registry.gauge("process_virtual_memory_bytes", "Address space of the process.")
    most_virtual = registry.gauge("process_virtual_memory_max_bytes", "Most address space that it may have.")
    resident = registry.gauge("process_resident_memory_bytes", "Memory that the process holds.")
    start = registry.gauge("process_start_time_seconds", "Unix time at which the process started.")
    a_second, a_page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    boot = _boot_time()

    def soft_limit(which: int) -> float:
        limit, _ = resource.getrlimit(which)
        return _UNLIMITED if limit == resource.RLIM_INFINITY else limit

    def collect() -> None:
        user, system, started, address_space, pages = _numbers(
            _USER_TIME, _SYSTEM_TIME, _START, _VIRTUAL, _PAGES
        )
        cpu.set((user + system) / a_second)
        start.set(boot + started / a_second)
        virtual.set(address_space)
        resident.set(pages * a_page)
        files.set(sum(1 for _ in (_PROC / "self/fd").iterdir()) - 1)  # without the one that lists them
        most_files.set(soft_limit(resource.RLIMIT_NOFILE))
        most_virtual.set(soft_limit(resource.RLIMIT_AS))

    registry.before_scrape(collect)


def _numbers(*fields: int) -> list[int]:
    """Return these fields of the process's status."""
    # The name of the program is in brackets, and may have any characters.
    _, _, rest = (_PROC / "self/stat").read_text(errors="replace").rpartition(")")
    found = rest.split()
    return [int(found[field - _FIRST_AFTER_NAME]) for field in fields]


def _boot_time() -> int:
    """Return the Unix time at which the machine started."""
    lines = (_PROC / "stat").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("btime "))
