"""Cells on a real Dask scheduler with two workers; one of them is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from kubetide import __version__
from kubetide.cli.main import cli

PATIENCE_S = 120
TABLES = ("cells.csv", "settings.csv", "sweep.json", "sweep.html")
SETS = ("--set", "hpa/web.target=30,60", "--set", "group/general.max=4,5")

needs_dask = pytest.mark.skipif(
    find_spec("distributed") is None,
    reason="distributed is not installed",
)
pytestmark = [
    # What the packages themselves warn of.
    pytest.mark.filterwarnings("default"),
]


def invoke(*arguments):
    return CliRunner().invoke(cli, ["sweep", *map(str, arguments)])


def until(found):
    for _ in range(PATIENCE_S * 20):
        value = found()
        if value:
            return value
        time.sleep(0.05)
    raise AssertionError("nothing came")


@contextmanager
def started(*command, path=""):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [path, *sys.path]))}
    with subprocess.Popen(
        [sys.executable, "-m", *map(str, command)],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def cluster(folder: Path, *, workers=2, path=""):
    """A scheduler and its workers; yields its address and their processes."""
    file = folder / "scheduler.json"
    with ExitStack() as stack:
        stack.enter_context(
            started(
                "distributed.cli.dask_scheduler",
                "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", file,
            )
        )  # fmt: skip
        address = until(lambda: file.exists() and json.loads(file.read_text() or "{}").get("address"))
        processes = [
            stack.enter_context(
                started(
                    "distributed.cli.dask_worker", address,
                    "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1",
                    "--local-directory", folder / f"worker-{number}",
                    path=path,
                )
            )
            for number in range(workers)
        ]  # fmt: skip
        until(lambda: workers_of(address) == workers)
        yield address, processes


def workers_of(address):
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        return len(client.scheduler_info(n_workers=-1)["workers"])


@needs_dask
@pytest.mark.slow
def test_the_same_tables_from_dask_with_a_worker_killed(shop, tmp_path):
    """Two workers, one killed with -9 half way: the tables of one process."""
    assert invoke(shop, *SETS, "--seeds", 3, "--jobs", 1, "--out", tmp_path / "here").exit_code == 0
    out = tmp_path / "dask"
    with cluster(tmp_path) as (address, workers):

        def kill():
            until(lambda: len(list((out / "cells").glob("*.json"))) >= 4)
            workers[0].send_signal(signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        result = invoke(shop, *SETS, "--seeds", 3, "--dask", address, "--out", out)
        killer.join()
        assert workers[0].wait() == -signal.SIGKILL
    assert result.exit_code == 0, result.output
    for name in TABLES:
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


@needs_dask
@pytest.mark.slow
def test_workers_of_another_version_are_refused(shop, tmp_path):
    """Nothing runs, and both versions are named; so are workers without kubetide."""
    other = tmp_path / "other" / "kubetide"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text('__version__ = "0.0.9"\n')
    with cluster(tmp_path, workers=1, path=str(other.parent)) as (address, _):
        result = invoke(shop, *SETS, "--dask", address, "--out", tmp_path / "out")
    assert f"the worker has kubetide 0.0.9, and this is kubetide {__version__}" in str(result.exception)
    assert not (tmp_path / "out").exists()


@needs_dask
@pytest.mark.slow
def test_no_scheduler(shop, tmp_path):
    """An address at which nothing listens is reported, and what to do."""
    result = invoke(shop, *SETS, "--dask", "tcp://127.0.0.1:1", "--out", tmp_path / "out")
    assert "no Dask scheduler answers at tcp://127.0.0.1:1" in str(result.exception)


def test_without_the_package(shop, tmp_path, monkeypatch):
    """Where distributed is not installed, the extra is named."""
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = invoke(shop, *SETS, "--dask", "tcp://127.0.0.1:1", "--out", tmp_path / "out")
    assert "pip install 'distributed>=2026.3'" in str(result.exception)
