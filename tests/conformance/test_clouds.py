"""The recorded cases of the clouds suite, as part of the test suite."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from tests.conformance import clouds
from tests.conformance.__main__ import main, suite_names
from tests.conformance.cases import Selection, case_files, selected_cases

DATA = Path(__file__).parent / "data" / "clouds"
NEEDS = {"externalgrpc": ("google.protobuf",)}


def missing(provider):
    return [name for name in NEEDS.get(provider, ()) if importlib.util.find_spec(name) is None]


@pytest.mark.parametrize("path", sorted(case_files([DATA])), ids=lambda path: path.name.split(".")[0])
def test_recorded_cases(path):
    """Every recorded answer and story of a provider comes out the same, or as a rule says."""
    if missing(path.name.split(".")[0]):
        pytest.skip(f"not installed: {missing(path.name.split('.')[0])}")
    cases = list(selected_cases(clouds, [path], Selection()))
    assert cases
    found = {clouds.case_id(case): clouds.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


def test_a_changed_answer_is_found():
    """The comparison sees one amount that differs."""
    cases = list(selected_cases(clouds, [DATA / "aws.json.gz"], Selection(groups=("aws/template",))))
    case = next(one for one in cases if "template" in one["expect"]["steps"][1]["groups"][0])
    assert clouds.first_difference(case) is None
    case["expect"]["steps"][1]["groups"][0]["template"]["capacity"]["pods"] = "29"
    assert "capacity.pods" in clouds.first_difference(case)


def test_a_missing_call_is_found():
    """The comparison sees a change that was expected and not made."""
    cases = selected_cases(clouds, [DATA / "aws.json.gz"], Selection(groups=("aws/sizes",)))
    case = next(one for one in cases if "SetDesiredCapacity" in str(one["expect"]))
    step = next(one for one in case["expect"]["steps"] if "SetDesiredCapacity" in str(one.get("calls")))
    step["calls"] = [call for call in step["calls"] if call["api"] != "SetDesiredCapacity"]
    assert "changes" in clouds.first_difference(case)


def test_a_provider_without_a_module_fails():
    """Cases that nothing plays count as failed."""
    case = {"id": "x", "provider": "nowhere", "kind": "tags", "input": {}, "expect": {}}
    assert clouds.first_difference(case) == "there is no module tests.conformance.clouds_nowhere"


def test_parts_of_the_suite_are_no_suites():
    """The runner offers the suite, not its parts."""
    assert "clouds" in suite_names()
    assert not [name for name in suite_names() if name.startswith("clouds_")]


def test_the_runner_plays_a_file(capsys):
    """The runner ends on the counts."""
    assert main(["clouds", str(DATA / "common.json.gz")]) == 0
    assert capsys.readouterr().out.endswith("24 passed, 0 failed\n")
