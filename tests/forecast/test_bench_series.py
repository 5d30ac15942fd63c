"""The series of `bench plan` are read as they are written, and what is wrong with one is said."""

from __future__ import annotations

import gzip

import pytest
from bench.plan_series import parse_series

from kubetide.units.time import seconds


def test_a_file_of_numbers_with_its_settings(tmp_path):
    """Header, compression, step, capacity and scale are read; without a capacity the mean load is 8 pods."""
    path = tmp_path / "load.csv.gz"
    path.write_bytes(gzip.compress(b"time,value\n0,10\n1,30\n"))
    one = parse_series(f"{path}:step=15s:capacity=5:scale=2")
    assert (one.name, one.values.tolist(), one.step, one.capacity) == ("load", [20, 60], seconds(15), 5)
    assert parse_series(str(path)).capacity == 20 / 8


@pytest.mark.parametrize(
    ("text", "setting", "said"),
    [
        ("1\n-2\n", "", "negative"),
        ("", "", "empty"),
        ("1\n", ":size=3", "is not read"),
        ("1\n", ":capacity=0", "above 0"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, text, setting, said):
    """The file or the setting is named, with what is expected."""
    path = tmp_path / "load.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        parse_series(f"{path}{setting}")
