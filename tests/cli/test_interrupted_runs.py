"""Runs that Ctrl-C, a closed pipe or a full disk ends: their results stay."""

from __future__ import annotations

import errno
import io
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.cli.calling import EXAMPLE, KUBETIDE, PATIENCE_S, begin, call
from tests.simulate.made import timeline

from kubetide.cli.common.output import finish
from kubetide.runtime.recording.folder import is_running
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.run import RunResult


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_run_cleanly(tmp_path, number):
    """An interrupted run prints the summary of what there was, and its records replay."""
    with begin("up", "--speed", 600, "--out", tmp_path) as run:
        while " because " not in run.stdout.readline():
            assert run.poll() is None
        run.send_signal(number)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, err) == (0, "")
    assert "web-shop   2026-03-02 11:00 UTC" in out
    assert call("replay", tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_at_once_ends_a_run_cleanly(tmp_path, number):
    """A run that is interrupted with its first line, before anything is decided, has its summary, too."""
    with begin("up", "--out", tmp_path) as run:
        assert "Ctrl-C ends it" in run.stdout.readline()
        run.send_signal(number)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, err) == (0, "")
    assert "web-shop   2026-03-02 11:00 UTC" in out
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_simulation_with_its_results(tmp_path, number):
    """An interrupted `simulate` holds its folder until then, leaves its files, says when, and exits with 130."""
    with begin("simulate", EXAMPLE.with_name("web-shop.yaml"), "--out", tmp_path) as run:
        while not is_running(tmp_path) or not list(tmp_path.glob("records/nodes-*.jsonl")):
            assert run.poll() is None
            time.sleep(0.05)
        second = call("simulate", EXAMPLE, "--out", tmp_path)
        run.send_signal(number)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert f"another run is writing to {tmp_path}" in second.stderr
    assert "--out" in second.stderr
    assert run.returncode == 130
    assert re.fullmatch(r"interrupted at \d\d:\d\d of the run \(2026-03-02\); .*\n", err)
    assert out.startswith("web-shop   2026-03-02 00:00 UTC")
    assert (tmp_path / "report.html").exists()
    assert call("replay", tmp_path).returncode == 0


def test_a_run_without_records_says_so(tmp_path, capsys):
    """A run that ended before its first decision prints that there are no records, and leaves its other files."""
    line = timeline(steps=0)
    finish(RunResult(line, summarize("shop", line), (), (), interrupted=True), tmp_path)
    assert "records  none: the run ended before the first decision" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.json", "timeline.json"}


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError(errno.ENOSPC, "No space")]
)
def test_the_files_of_a_run_are_written_though_nobody_reads_its_summary(tmp_path, monkeypatch, error):
    """Where the summary cannot be printed, because `head` has read enough or the disk is full, no file is missing."""
    line = timeline(steps=4)

    class Unread(io.StringIO):
        def write(self, _text: str) -> int:
            raise error

    monkeypatch.setattr(sys, "stdout", Unread())
    with pytest.raises(OSError, match=error.strerror):
        finish(RunResult(line, summarize("shop", line), (), ()), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.json", "timeline.json"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence():
    """An answer that standard output cannot take ends with a sentence and status 1, not with a traceback."""
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [*KUBETIDE, "examples"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr == "kubetide: cannot write standard output: No space left on device; free space there\n"


@pytest.mark.slow
def test_up_ends_when_nobody_reads(tmp_path):
    """When its reader closes the pipe, `up` stops as on Ctrl-C: no traceback, and the records are complete."""
    with begin("up", "--speed", 600, "--out", tmp_path) as run:
        run.stdout.readline()
        run.stdout.close()
        err = run.stderr.read()
        run.wait(timeout=PATIENCE_S)
    assert "Traceback" not in err
    assert (tmp_path / "report.html").exists()
    assert call("replay", tmp_path).returncode == 0
