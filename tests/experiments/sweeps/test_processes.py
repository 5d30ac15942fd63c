"""Cells in processes; some of them are killed."""

from __future__ import annotations

import os
import signal
import threading

import msgspec
import pytest
from tests.simulate.worlds import small

from kubetide.experiments.sweeps.cell import Outcome, Task, run_cell, task_of
from kubetide.experiments.sweeps.processes import Processes


def tasks(tmp_path, count):
    return [
        msgspec.json.encode(task_of(small(duration="5m"), tmp_path, seed)) for seed in range(1, count + 1)
    ]


@pytest.mark.slow
def test_a_killed_process_costs_its_cell_time_only(tmp_path):
    """Processes killed with -9 in the middle change no outcome."""
    given = tasks(tmp_path, 6)
    killed = []
    outcomes = {}
    with Processes(2) as pool:
        for number, outcome in pool.run(given):
            outcomes[number] = outcome
            if not killed:
                killed = pool.pids
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
        assert len(killed) == 2
        assert not set(killed) & set(pool.pids)
    assert outcomes == {number: run_cell(task) for number, task in enumerate(given)}


@pytest.mark.slow
def test_a_cell_that_kills_every_process_fails(tmp_path):
    """After three processes the cell counts as failed, with the signal, and the pool ends."""
    over = threading.Event()

    def kill():
        while not over.wait(0.05):
            for pid in pool.pids:
                os.kill(pid, signal.SIGKILL)

    with Processes(1) as pool:
        killer = threading.Thread(target=kill)
        killer.start()
        try:
            [(number, outcome)] = list(pool.run(tasks(tmp_path, 1)))
        finally:
            over.set()
            killer.join()
    assert number == 0
    assert msgspec.json.decode(outcome, type=Outcome).error.startswith(
        "3 processes that ran it died, the last by signal 9 (SIGKILL)"
    )


def test_another_version_is_refused(tmp_path):
    """A task of another kubetide is not run: it might decide differently."""
    task = msgspec.structs.replace(task_of(small(), tmp_path, 1), version="0.0.9")
    outcome = msgspec.json.decode(run_cell(msgspec.json.encode(task)), type=Outcome)
    assert "and this is kubetide 0.0.9" in outcome.error


def test_a_task_that_cannot_be_read():
    """Bytes that are no task are an outcome with an error."""
    assert "cannot read the task" in msgspec.json.decode(run_cell(b"[]"), type=Outcome).error


def test_traces_travel_with_the_task(tmp_path):
    """A worker needs no file of the machine that asks."""
    (tmp_path / "load.csv").write_text("requests\n" + "30\n" * 20)
    scenario = small(duration="5m")
    load = msgspec.structs.replace(
        scenario.services[0].load, daily=None, trace="load.csv", column="requests", step="1m"
    )
    service = msgspec.structs.replace(scenario.services[0], load=load)
    task = task_of(msgspec.structs.replace(scenario, services=(service,)), tmp_path, 1)
    assert list(task.files) == ["0-load.csv"]
    (tmp_path / "load.csv").unlink()
    outcome = msgspec.json.decode(run_cell(msgspec.json.encode(task)), type=Outcome)
    assert outcome.error == ""
    assert outcome.summary.services[0].peak_rps == 30
    assert isinstance(task, Task)
