"""The process reports what it takes of its machine, as upstream's programs do."""

from __future__ import annotations

import os
import resource
from contextlib import ExitStack
from pathlib import Path

from tests.runtime.series.reading import read

from kubetide.runtime.series import show_process
from kubetide.units.exposition import Registry


def shown():
    registry = Registry()
    show_process(registry)
    return registry, lambda: {name: value for (name,), value in read(registry, "process_").items()}


def test_memory_files_and_start_are_those_of_the_process():
    """Panels about memory, CPU and restarts that were made for upstream's programs go on working."""
    _, found = shown()
    before = found()
    assert before["resident_memory_bytes"] % os.sysconf("SC_PAGE_SIZE") == 0
    assert 1 << 20 < before["resident_memory_bytes"] < before["virtual_memory_bytes"]
    assert before["max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    machine = float(Path("/proc/uptime").read_text().split()[0])
    age = machine - (before["start_time_seconds"] - read_boot())
    assert 0 <= age <= machine
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(Path(os.devnull).open())
        assert found()["open_fds"] == before["open_fds"] + 3


def read_boot():
    return next(
        int(line.split()[1]) for line in Path("/proc/stat").read_text().splitlines() if "btime" in line
    )


def test_cpu_time_grows():
    """What the process works is counted in seconds."""
    registry, found = shown()
    before, spent = found()["cpu_seconds_total"], os.times()
    while os.times().user - spent.user < 0.05:
        sum(range(10_000))
    assert 0.03 <= found()["cpu_seconds_total"] - before < 5
    assert {one.kind for one in registry.families if one.name.endswith("_total")} == {"counter"}


def test_no_limit_is_shown_as_upstream_shows_it(monkeypatch):
    """An address space without a limit is 2 to the 64."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    assert b"process_virtual_memory_max_bytes 1.8446744073709552e+19" in shown()[0].text()
