"""Nodes that are there before the pods, and the time line to come."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import load_scenario

RAMP = Path(__file__).parents[2] / "examples" / "morning-ramp.yaml"
DUE = 30 * 4
"""The step at whose end it is half past eight."""


@pytest.fixture(scope="module")
def ramps(tmp_path_factory):
    """The morning ramp with and without lead time: results and folders."""
    found = {}
    for name, flags in (("ahead", {}), ("late", {"demand-sources": "pending"})):
        out = tmp_path_factory.mktemp(name)
        scenario = msgspec.structs.replace(load_scenario(RAMP), duration="36m", flags=flags)
        found[name] = run_simulation(scenario, base=RAMP.parent, out=out, seed=1, warn=print), out
    return found


def test_pods_run_at_the_due_time_not_a_boot_later(ramps):
    """With lead time no pod ever waits for a node; without it all 200 wait while nodes boot."""
    ahead, late = ramps["ahead"][0].timeline, ramps["late"][0].timeline
    assert max(ahead.nodes["workers"][:100]) == 0, "not half an hour too early"
    assert ahead.nodes["workers"][DUE - 1] == 12
    assert max(ahead.pending) == 0
    assert late.nodes["workers"][DUE - 1] == 0
    assert max(late.pending) == 200
    assert (ahead.pod_starts, late.pod_starts) == (200, 200)


def test_the_plan_says_what_is_to_come_and_why(ramps):
    """Before the ramp the time line has the order of nodes, four minutes ahead, and the change of the table."""
    out = str(ramps["ahead"][1])
    text = CliRunner().invoke(cli, ["plan", "--out", out, "--at", "08:05"]).output.splitlines()
    assert text[0] == "2026-03-02T08:05:00Z, and 1h0m0s ahead"
    assert text[1].startswith(
        "  2026-03-02T08:26:00Z  nodes      Deployment default/worker: nodes are asked for"
    )
    assert "schedules: HorizontalPodCronscaler office-hours, rule morning" in text[2]
    assert text[3].startswith(
        "  2026-03-02T08:30:00Z  schedules  default/office-hours: Deployment worker gets morning"
    )
    asked = CliRunner().invoke(cli, ["plan", "--out", out, "--at", "08:05", "-o", "json"]).output
    plan = msgspec.json.decode(asked)
    assert [one["loop"] for one in plan["entries"]] == ["nodes", "schedules"]
    for form in ("table", "text"):
        said = CliRunner().invoke(cli, ["plan", "--out", out, "--at", "08:05", "-o", form]).output
        assert said.splitlines() == text
    none = CliRunner().invoke(cli, ["plan", "--out", out, "--at", "08:05", "--ahead", "5m"]).output
    assert "nothing is foreseen by horizontal, nodes, schedules" in none


@pytest.mark.parametrize("ahead", ["soon", "-5m", "0s"])
def test_a_wrong_length_is_refused(ahead, tmp_path):
    """The option and what it was are named."""
    result = CliRunner().invoke(cli, ["plan", "--out", str(tmp_path), "--ahead", ahead])
    assert result.exit_code == 2
    assert "--ahead" in result.output
