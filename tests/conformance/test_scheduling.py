"""The recorded cases of the scheduling suite, as part of the test suite."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conformance import scheduling
from tests.conformance.cases import Selection, read_document, selected_cases
from tests.conformance.scheduling import node_of, pod_of

from kubetide.scheduling import PodGroup, classify
from kubetide.scheduling.estimator.order import Orders

DATA = Path(__file__).parent / "data" / "scheduling"

COUNTS = {
    "equivalence": 77,
    "estimate": 664,
    "placement": 270,
    "predicates-random": 2520,
    "predicates-systematic": 1251,
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] if name == "predicates-random" else []) for name in COUNTS],
)
def test_recorded_cases(name):
    """Feasible nodes, reasons, placements, estimates and groups of every case are upstream's."""
    cases = list(selected_cases(scheduling, [DATA / f"{name}.json.gz"], Selection()))
    assert len(cases) == COUNTS[name]
    found = {scheduling.case_id(case): scheduling.first_difference(case) for case in cases}
    assert {case: difference for case, difference in found.items() if difference} == {}


@pytest.mark.parametrize(
    ("file", "change"),
    [
        ("predicates-systematic", lambda expect: expect["feasible"].pop()),
        ("placement", lambda expect: expect["steps"][0]["statuses"].reverse()),
        ("estimate", lambda expect: expect.update(nodeCount=expect["nodeCount"] + 1)),
        ("equivalence", lambda expect: expect["groups"].pop()),
    ],
)
def test_a_changed_answer_is_found(file, change):
    """The comparison of each form sees one answer that differs."""
    case = next(iter(selected_cases(scheduling, [DATA / f"{file}.json.gz"], Selection())))
    assert scheduling.first_difference(case) is None
    change(case["expect"])
    assert scheduling.first_difference(case)


def test_orders_of_many_groups():
    """More than twelve groups are packed in upstream's order, ties included."""
    cases = read_document(DATA / "orders.json.gz")["cases"]
    for case in cases:
        pods = list(map(pod_of, case["pods"]))
        groups = [PodGroup((pod,), classify(pod)) for pod in pods]
        assert Orders(groups, 36).of(node_of(case["template"]), range(len(groups))) == case["order"], case[
            "id"
        ]
    assert len(cases) == 50
