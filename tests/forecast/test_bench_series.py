"""The series of `bench plan` are read as they are written, and an error says what is wrong with one."""

from __future__ import annotations

import gzip
from dataclasses import replace

import numpy as np
import pytest
from bench.plan import run
from bench.plan_results import Results, key_of
from bench.plan_series import Series, parse_series
from hypothesis import given, settings
from hypothesis import strategies as st

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


def test_what_has_run_is_not_run_again(tmp_path):
    """Figures come back from the file by load and settings; a broken line is named with its number."""
    path = tmp_path / "results.jsonl"
    one = Series("web", np.array([1.0, 2.0]), seconds(15), 8.0)
    key = key_of(one, {"metric": "cpu", "seed": 1})
    Results(path).add(key, "web", "plan", {"slo_minutes": 3})
    assert Results(path).get(key) == {"slo_minutes": 3}
    assert key_of(replace(one, values=np.array([1.0, 3.0])), {"metric": "cpu", "seed": 1}) != key
    assert Results(path).get(key_of(one, {"metric": "cpu", "seed": 2})) is None
    path.write_text(path.read_text() + "oops\n")
    with pytest.raises(ValueError, match="line 2"):
        Results(path)


@pytest.mark.parametrize("metric", ["cpu", "rate"])
@given(
    factor=st.sampled_from([1 / 60, 60.0, 1e-4, 1e4, 7.0]),
    values=st.lists(st.integers(1, 400), min_size=30, max_size=30),
)
@settings(max_examples=3, deadline=None)
def test_the_unit_of_a_load_changes_no_decision(metric, factor, values):
    """Load and what a pod serves times the same factor: pods, nodes and minutes are the same, to the last rescale."""
    load = np.array(values, np.float64)
    one = Series("load", load, seconds(60), 11.37)
    other = Series("load", load * factor, seconds(60), 11.37 * factor)
    figures = [run(each, "plan", metric, nodes=True, seed=1) for each in (one, other)]
    assert figures[0] == figures[1]
