"""The recorded cases of the cron suite, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

from tests.conformance import cron
from tests.conformance.cases import Selection, selected_cases

DATA = Path(__file__).parent / "data" / "cron"


def test_recorded_cases():
    """Every recorded activation and every recorded message comes out the same."""
    cases = list(selected_cases(cron, [DATA], Selection()))
    assert len(cases) == 85
    found = {cron.case_id(case): cron.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


def test_a_changed_answer_is_found():
    """The comparison sees one activation that differs."""
    case = next(iter(selected_cases(cron, [DATA], Selection())))
    case["Next"][2] = case["Next"][3]
    assert cron.first_difference(case).startswith("Next")
