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


def removals(*steps, least=0):
    """Return a story of a group of three machines, each step of which removes some, as upstream."""
    machine = {"AutoScalingGroupId": "asg-0", "LifeCycleState": "IN_SERVICE", "Zone": "z"}
    world = {
        "groups": [{"AutoScalingGroupId": "asg-0", "DesiredCapacity": 3}],
        "instances": [machine | {"InstanceId": f"ins-{number}"} for number in (1, 2, 3)],
        "zones": [{"Zone": "z", "ZoneId": "1"}],
    }
    given, expected = [], [{"ok": True}]
    for names in steps:
        nodes = [{"name": "n", "provider_id": f"qcloud:///1/{one}"} for one in names]
        given.append({"op": "delete", "group": "asg-0", "nodes": nodes})
        asked = {"AutoScalingGroupId": "asg-0", "InstanceIds": names}
        call = {"service": "as", "version": "2018-04-19", "action": "RemoveInstances", "params": asked}
        expected.append({"ok": True, "calls": [call]})
    settings = {"region": "r", "nodes": [f"{least}:5:asg-0"], "world": world, "steps": given}
    return {
        "id": "x",
        "provider": "tencent",
        "kind": "world",
        "input": settings,
        "expect": {"steps": expected},
    }


def test_a_removal_that_is_refused_on_purpose_ends_a_story():
    """GONE_ALREADY, BELOW_MINIMUM: only what a rule says may be refused where upstream goes on."""
    play = clouds.first_difference
    assert play(removals(["ins-1"], ["ins-1"])) is None
    assert "doesn't belong" in play(removals(["ins-1"], ["ins-4"]))
    assert play(removals(["ins-1", "ins-2"], least=2)) is None
    assert "min size reached" in play(removals(["ins-1"], least=3))


def test_regional_groups_are_taken_on_purpose():
    """REGIONAL_GROUPS: only the URL of a group of a region; upstream refuses it as it refuses others."""
    url = "https://www.googleapis.com/compute/v1/projects/p/regions/r/instanceGroups/g"
    case = {"id": "x", "provider": "gce", "kind": "mig_url", "input": {"url": url}}
    refused = {
        "error": "wrong url: expected format https://.*/projects/<project-id>/zones/<zone>/instanceGroups/<name>"
    }
    assert clouds.first_difference(case | {"expect": {"error": f"{refused['error']}, got {url}"}}) is None
    other = url.replace("instanceGroups", "instanceGroupManagers")
    expected = {"error": f"{refused['error']}, got {other}"}
    assert clouds.first_difference(case | {"input": {"url": other}, "expect": expected}) is None


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
