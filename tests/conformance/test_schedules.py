"""The recorded cases of the suite of time tables, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import schedules
from tests.conformance.cases import Selection, selected_cases
from tests.conformance.schedules_cases import points
from tests.conformance.schedules_cases.intended import intended
from tests.conformance.schedules_cases.rules import RULES, rule_of

DATA = Path(__file__).parent / "data" / "schedules"
CASES = list(selected_cases(schedules, [DATA], Selection()))


def _of(system):
    return [case for case in CASES if case["_system"] == system]


def _differences(cases):
    found = {schedules.case_id(case): schedules.first_difference(case) for case in cases}
    return {case: difference for case, difference in found.items() if difference}


def test_the_files_are_here():
    """A clone alone holds the cases."""
    assert [len(_of(one)) for one in ("keda", "alibaba", "tkestack", "dst", "tencent")] == [
        304,
        248,
        60,
        1026,
        41,
    ]


@pytest.mark.slow
@pytest.mark.parametrize("system", ["keda", "alibaba", "tkestack", "tencent"])
def test_recorded_cases(system):
    """Every recorded write, event, state and refusal comes out the same, or as a rule says."""
    assert _differences(_of(system)) == {}


@pytest.mark.slow
def test_ten_years_of_clock_changes():
    """Every wall clock around every change, and every window, is as intended."""
    assert _differences([case for case in _of("dst") if case["kind"] != "span"]) == {}


def _applies(rule):
    return [case for case in (*_of("alibaba"), *_of("tkestack")) if rule_of(case) is rule]


@pytest.mark.parametrize("rule", RULES, ids=[rule.name for rule in RULES])
def test_each_difference_on_purpose(rule):
    """Each rule holds for some case by its input, has a reason, and its case comes out as intended."""
    cases = _applies(rule)
    assert cases
    assert rule.reason
    assert _differences(cases[:3]) == {}


def test_a_rule_is_not_a_pardon(monkeypatch):
    """A case under a rule is still compared, with what is intended: one write more is seen."""
    case = next(one for one in _of("alibaba") if rule_of(one) is not None)
    expected = intended(case)
    more = expected._replace(writes=[*expected.writes, ("2026-06-15T00:00:00Z", "deployments/shop", 1)])
    monkeypatch.setattr(points, "intended", lambda _: more)
    assert schedules.first_difference(case).startswith("intended writes")


def test_a_changed_answer_is_found():
    """The comparison sees one size that differs."""
    case = next(one for one in _of("alibaba") if rule_of(one) is None)
    case["result"]["workloads"]["deployments/shop"] += 1
    try:
        assert schedules.first_difference(case).startswith("workloads")
    finally:
        case["result"]["workloads"]["deployments/shop"] -= 1
