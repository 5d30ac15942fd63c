"""The recorded loops of Cluster Autoscaler, as part of the test suite."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import pytest
from tests.conformance import nodes
from tests.conformance.cases import Selection, selected_cases

DATA = Path(__file__).parent / "data" / "nodes"
COUNT = 472


@pytest.mark.slow
def test_recorded_stories():
    """Sizes, deletions, evictions, taints, events, statuses and choices of each loop are upstream's."""
    cases = list(selected_cases(nodes, [DATA], Selection()))
    assert len(cases) == COUNT
    found = {nodes.case_id(case): nodes.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


@pytest.mark.parametrize(
    ("group", "change"),
    [
        ("scale-up-basic", lambda expect: expect["scaleUps"][0].update(delta=99)),
        ("scale-up-basic", lambda expect: expect["events"].pop()),
        ("scale-up-basic", lambda expect: expect["targetSizes"].update(a=7)),
        ("sd-actuation", lambda expect: expect["scaleDownStatus"].update(result="other")),
        ("sd-actuation", lambda expect: expect["taintsAdded"].update({"a-n0": ["other"]})),
        ("sd-actuation", lambda expect: expect["statusConfigMap"]["clusterWide"]["health"].pop("status")),
    ],
)
def test_a_changed_answer_is_found(group, change):
    """The comparison sees each kind of answer that differs."""
    case = deepcopy(next(iter(selected_cases(nodes, [DATA], Selection(groups=(group,))))))
    assert nodes.first_difference(case) is None
    step = case["steps"][0]
    step.pop("expectAlternatives", None)
    change(step["expect"])
    assert nodes.first_difference(case)


def test_options_are_any_flags_of_upstream():
    """A story may set any flag of upstream's command line, also one whose meaning another flag has here."""
    every = selected_cases(nodes, [DATA], Selection(groups=("taints-config",)))
    case = deepcopy(next(one for one in every if "startup-taint" in one["options"]))
    case["options"]["ignore-taint"] = case["options"].pop("startup-taint")
    case["options"]["max-inactivity"] = "20m"
    assert nodes.first_difference(case) is None
