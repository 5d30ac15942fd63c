"""The output of a sweep beside its tables: Parquet, and records of its cells."""

from __future__ import annotations

import csv

import pytest
from tests.experiments.sweeps.test_command import invoke

from kubetide.runtime.recording.records import recorded_loops

SETS = ("--set", "hpa/web.target=30,60", "--set", "duration=2m")


def test_parquet(shop, tmp_path):
    """The Parquet tables say what the CSV says, with numbers as numbers."""
    parquet = pytest.importorskip("pyarrow.parquet")
    result = invoke(shop, *SETS, "--jobs", 1, "--out", tmp_path, "--parquet")
    assert result.exit_code == 0, result.output
    for name in ("cells", "settings"):
        rows = list(csv.DictReader((tmp_path / f"{name}.csv").read_text().splitlines()))
        table = parquet.read_table(tmp_path / f"{name}.parquet")
        assert table.column_names == list(rows[0])
        for row, own in zip(rows, table.to_pylist(), strict=True):
            for column, text in row.items():
                if isinstance(own[column], bool | int | float):
                    assert float(own[column]) == pytest.approx(float(text), abs=1e-6)
                else:
                    assert own[column] == text


@pytest.mark.parametrize("where", ["{folder}", "file://{folder}"], ids=["a folder", "a URL"])
def test_records_of_cells(shop, tmp_path, where):
    """Each cell's records lie under its name; a cell that was taken over is not run again."""
    if "://" in where:
        pytest.importorskip("fsspec")
    folder, out = tmp_path / "kept", tmp_path / "out"
    given = (shop, *SETS, "--jobs", 1, "--out", out)
    assert invoke(*given, "--records", where.format(folder=folder)).exit_code == 0
    names = sorted(path.stem for path in (out / "cells").glob("*.json"))
    assert sorted(path.name for path in folder.iterdir()) == names
    assert len(names) == 2
    assert all("horizontal" in recorded_loops(folder / name) for name in names)
    again = tmp_path / "again"
    assert invoke(*given, "--resume", "--records", again).exit_code == 0
    assert not again.exists()


def test_records_that_cannot_be_written(shop, tmp_path):
    """The error names each such cell with its place."""
    (tmp_path / "file").write_text("")
    result = invoke(
        shop, *SETS, "--jobs", 1, "--out", tmp_path / "out", "--records", tmp_path / "file" / "in"
    )
    assert result.exit_code == 1
    assert "records cannot be written at" in result.output
