"""A soak that is stopped goes on where it was."""

from __future__ import annotations

import pytest
from tests.soak.__main__ import main
from tests.soak.progress import Progress, save, taken_up


def test_runs_that_were_played_are_not_played_again(tmp_path, capsys):
    """A second call with more hours begins after the last run of the first, and a third one plays nothing."""
    soak = ["--seed", "1000", "--minutes", "42", "--progress", str(tmp_path), "--hours"]
    assert main([*soak, "0.7"]) == 0
    assert "seed 1000: good" in capsys.readouterr().out
    assert main([*soak, "1.4"]) == 0
    reported = capsys.readouterr().out
    assert "1 runs of 2 were played before" in reported
    assert "seed 1000:" not in reported
    assert "seed 1001: good" in reported
    assert "2 good, 0 wrong" in reported
    assert main([*soak, "1.4"]) == 0
    assert "seed" not in capsys.readouterr().out.split("\n", 1)[1]


def test_what_was_wrong_before_stays_wrong(tmp_path, capsys):
    """A run that failed before the stop makes the whole soak fail, and its seed is named."""
    save(tmp_path / "1000-42.json", Progress(seed=1000, minutes=42, following=1001, failed=(1000,)))
    assert main(["--seed", "1000", "--minutes", "42", "--progress", str(tmp_path), "--hours", "0.7"]) == 1
    assert "0 good, 1 wrong: seeds 1000" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "{", '{"seed": 7, "minutes": 42, "following": 9}', '{"seed": 1000}'])
def test_a_file_of_another_soak_is_begun_anew(tmp_path, text):
    """A broken file, or one of another seed, does not prevent a soak from its first run."""
    path = tmp_path / "1000-42.json"
    path.write_text(text)
    assert taken_up(path, 1000, 42) == Progress(seed=1000, minutes=42, following=1000)
