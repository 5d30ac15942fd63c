"""Node groups that are created, from end to end: the example of docs/capacity.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario
from kubetide.simulate.variants import variant_of

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
def test_created_groups_cost_less_than_one_for_all(tmp_path):
    """Jobs of three shapes run on groups of their own, which go again; all is replayed, and the bill is smaller."""
    scenario = load_scenario(EXAMPLES / "new-groups.yaml")
    bills = {}
    for name in ("one-group", "created"):
        out = tmp_path / name
        found = run_simulation(variant_of(scenario, name), base=EXAMPLES, out=out, seed=1, warn=pytest.fail)
        assert found.violations == ()
        assert replay(out).differences == ()
        bills[name] = found.summary
    assert bills["created"].cost < 0.8 * bills["one-group"].cost
    assert bills["created"].pending_pod_minutes < 1.5 * bills["one-group"].pending_pod_minutes
    hours = {group.name: group.node_hours for group in bills["created"].groups}
    assert hours.pop("general") == 0
    assert {name.rpartition("-zone")[0] for name in hours} >= {"auto-c5-2xlarge", "auto-r5-2xlarge"}
    reasons = [reason for record in read_records(tmp_path / "created", "nodes") for reason in record.reasons]
    deleted = [one.subject for one in reasons if one.code == "GroupDeleted"]
    assert deleted
    assert set(deleted) <= {one.subject for one in reasons if one.code == "GroupCreated"}
