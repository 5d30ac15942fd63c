"""The recorded cases of the horizontal suite, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import horizontal
from tests.conformance.__main__ import main
from tests.conformance.cases import Selection, case_files, selected_cases

DATA = Path(__file__).parent / "data" / "horizontal"
FILES = sorted(case_files([DATA]))


def test_the_files_are_here():
    """A clone alone holds the cases."""
    assert len(FILES) == 22


def _file(path):
    name = path.name.split(".")[0].removeprefix("vectors-")
    return pytest.param(path, id=name, marks=[pytest.mark.slow] if name == "sequence" else [])


@pytest.mark.parametrize("columns_from", [0, 1_000_000], ids=["columns", "plain"])
@pytest.mark.parametrize("path", [_file(path) for path in FILES])
def test_recorded_cases(path, columns_from):
    """Every recorded reconcile comes out the same, in columns and pod by pod."""
    cases = list(selected_cases(horizontal, [path], Selection()))
    assert cases
    found = {
        horizontal.case_id(case): horizontal.first_difference(case, columns_from=columns_from)
        for case in cases
    }
    assert {case: difference for case, difference in found.items() if difference} == {}


def test_a_changed_answer_is_found():
    """The comparison sees a single number that differs."""
    [case] = selected_cases(
        horizontal, [DATA / "vectors-edge.json.gz"], Selection(ids=("edge/tolerance-util-440m",))
    )
    assert horizontal.first_difference(case) is None
    case["expect"]["status"]["currentReplicas"] += 1
    assert horizontal.first_difference(case).startswith("status.currentReplicas: expected")


def test_the_runner_counts_and_exits(capsys):
    """The runner ends on the counts and on status 0 when nothing failed."""
    code = main(["horizontal", str(DATA / "vectors-upstream-pod-requests.json.gz"), "--single-step"])
    assert code == 0
    assert capsys.readouterr().out.endswith("3 passed, 0 failed\n")
