"""`python -m bench quality`: the tables of docs/quality.md, by one command."""

from __future__ import annotations

import json

import pytest
from bench import quality
from tests.simulate.test_bill import PODS, TYPES


@pytest.fixture
def files(tmp_path):
    """A load series of an hour, five pods and three types."""
    (tmp_path / "load.txt").write_text("\n".join(["20"] * 30 + ["60"] * 30) + "\n")
    (tmp_path / "pods.csv").write_text(PODS)
    (tmp_path / "types.csv").write_text(TYPES)
    series = f"--series={tmp_path}/load.txt:step=1m:capacity=10"
    return [series, "--pods", f"{tmp_path}/pods.csv", "--types", f"{tmp_path}/types.csv", "--jobs", "1"]


@pytest.mark.slow
def test_both_tables_by_one_command(files, capsys, tmp_path):
    """The figures are those of the two benchmarks, in Markdown, and as JSON in the last line; what has run is not run again."""
    with_results = ["--results", f"{tmp_path}/results.jsonl"]
    assert quality.main([*files, *with_results]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    found = json.loads(last)
    assert list(found["plan"]["series"]["load"]) == ["classic", "plan"]
    assert list(found["bill"]["policies"]) == ["upstream", "ours"]
    rows = [line for line in lines if line.startswith("| ")]
    assert len({line.count("|") for line in rows if "SLO" in line or "classic" in line}) == 1
    ratio = found["bill"]["policies"]["ours"]["ratio"]
    assert any("| `ours` |" in line and f"| {ratio:.3f} |" in line for line in rows)
    minutes = found["plan"]["sum"]["plan"]["slo_minutes"]
    assert any(line.startswith("|  | `plan` |") and f"| {minutes:,} |" in line for line in rows)
    runs = (tmp_path / "results.jsonl").read_text()
    assert runs.count("\n") == 2
    assert quality.main([*files, *with_results, "--only", "plan"]) == 0
    *_, again = capsys.readouterr().out.splitlines()
    assert json.loads(again) == {"plan": found["plan"], "bill": None}
    assert (tmp_path / "results.jsonl").read_text() == runs


def test_the_rest_of_the_page_stays():
    """Only the text between the marks is replaced."""
    page = quality.PAGE.read_text(encoding="utf-8")
    first = quality.written(page, "one\n")
    assert quality.written(first, "two\n") == quality.written(page, "two\n")
    assert f"{quality.BEGIN}\none\n{quality.END}" in first
    with pytest.raises(quality.QualityError, match="has no"):
        quality.written("a page", "one")


def test_a_benchmark_that_fails(files):
    """Its error output is passed on."""
    with pytest.raises(quality.QualityError, match="give a number of hours above 0"):
        quality.figures("bill", [*files[1:], "--hours", "-1"])
