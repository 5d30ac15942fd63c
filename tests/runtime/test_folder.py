"""The folder of a run: held by one at a time, and without what an earlier one left."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kubetide.runtime.recording.folder import RESULTS, claimed, is_running, write_whole
from kubetide.runtime.recording.records import RecordError


def test_a_folder_is_held_by_one_run(tmp_path):
    """While one run holds it a second is refused, with the folder and the way out; afterwards it is free."""
    assert not is_running(tmp_path)
    with claimed(tmp_path):
        assert is_running(tmp_path)
        with pytest.raises(RecordError, match=r"another run is writing to .*--out"), claimed(tmp_path):
            pass
        assert is_running(tmp_path)
    assert not is_running(tmp_path)
    with claimed(tmp_path):
        pass


def test_results_of_an_earlier_run_are_deleted(tmp_path):
    """A run that is cut short leaves no results of another beside its records; other files stay."""
    for name in (*RESULTS, "notes.txt"):
        (tmp_path / name).touch()
    with claimed(tmp_path):
        assert {path.name for path in tmp_path.iterdir()} == {"records", "notes.txt"}


def test_a_result_that_cannot_be_replaced_is_an_error(tmp_path):
    """A folder with the name of a result is refused, with the way out, and stays."""
    (tmp_path / RESULTS[0] / "own").mkdir(parents=True)
    with pytest.raises(RecordError, match=f"cannot replace .*{RESULTS[0]}: .*--out"), claimed(tmp_path):
        pass
    assert (tmp_path / RESULTS[0] / "own").exists()


def test_a_refused_run_takes_nothing_away(tmp_path):
    """The results of the run that holds the folder stay."""
    with claimed(tmp_path):
        (tmp_path / RESULTS[0]).touch()
        with pytest.raises(RecordError), claimed(tmp_path):
            pass
        assert (tmp_path / RESULTS[0]).exists()


def test_a_file_is_whole_or_as_it_was(tmp_path):
    """A failure while it is written leaves the old content and nothing else."""
    path = tmp_path / "summary.json"
    write_whole(path, lambda partial: partial.write_text("old"))

    def fail(partial):
        partial.write_text("ne")
        raise OSError

    with pytest.raises(OSError):
        write_whole(path, fail)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_readers_do_not_block_a_run_from_beginning(tmp_path):
    """A folder can be claimed while others ask all the time whether a run is going on."""
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "lock").touch()
    code = (
        "import sys; from pathlib import Path; from kubetide.runtime.recording.folder import is_running\n"
        "print('ready', flush=True)\n"
        "while True: is_running(Path(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE) as asker:
        assert asker.stdout.readline() == b"ready\n"
        for _ in range(200):
            with claimed(tmp_path):
                pass
        asker.kill()
