"""The recorded cases of the scoring suite, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import scoring
from tests.conformance.cases import Selection, selected_cases

DATA = Path(__file__).parent / "data" / "scoring"
CASES = list(selected_cases(scoring, [DATA], Selection()))


def test_recorded_cases():
    """Verdicts, order, raw and normalized scores of each plugin, totals and the node chosen are kube-scheduler's, of both versions."""
    assert len(CASES) == 2 * (251 + 26)
    found = {scoring.case_id(case): scoring.first_difference(case) for case in CASES}
    assert {case: difference for case, difference in found.items() if difference} == {}


@pytest.mark.parametrize(
    "change",
    [
        lambda expect: expect["order"].reverse(),
        lambda expect: expect["plugins"]["NodeResourcesFit"]["raw"].update(n1=1),
        lambda expect: expect["plugins"]["TaintToleration"].update(weight=2),
        lambda expect: expect["best"].clear(),
        lambda expect: expect.update(chosen="none"),
    ],
)
def test_a_changed_answer_is_found(change):
    """The comparison sees one answer that differs."""
    case = next(iter(selected_cases(scoring, [DATA / "scores.json.gz"], Selection(groups=("fit",)))))
    change(case["expect"])
    assert scoring.first_difference(case)
