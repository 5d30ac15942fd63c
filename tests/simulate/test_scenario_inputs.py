"""What a scenario file brings in: manifests and traces. Each mistake is reported with its place, before a run begins."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from tests.simulate.scenario_files import DEPLOYMENT, REMOVED, refused, written

from kubetide.embedded.load.traces import TraceError
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.scenario import Scenario, load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import Instant, parse_duration


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("replicas:", "replicaz:", ["spec.replicaz", "replicas"]),
        ("100m", "many", ["requests", "many"]),
        ("kind: Deployment", "kind: Deploymant", ["Deploymant", "Deployment"]),
        ("name: web\nspec", "nam: web\nspec", ["metadata"]),
    ],
)
def test_a_malformed_manifest_is_reported_with_its_line_in_the_scenario(tmp_path, old, new, words):
    """A mistake in a manifest names entry, file, the line in that file, object and field."""
    text = DEPLOYMENT.replace(old, new)
    block = "".join(f"    {line}\n" for line in text.splitlines())
    path = written(tmp_path, {"manifests": REMOVED})
    path.write_text(f"{path.read_text()}manifests:\n  - |\n{block}")
    line = refused(path)[0]
    assert line.startswith(f"manifests[0]: {path}:")
    for word in words:
        assert word in line
    number = int(line.removeprefix(f"manifests[0]: {path}:").split(":")[0])
    named = path.read_text().splitlines()[number - 1]
    assert named.strip().split(":")[0].lstrip("- ") in new + " requests metadata"


def test_more_pods_than_a_run_can_hold_are_refused(tmp_path):
    """A slip in a number of replicas is named before it fills the memory."""
    path = written(tmp_path, {"manifests": REMOVED})
    block = "".join(
        f"    {line}\n" for line in DEPLOYMENT.replace("replicas: 1", "replicas: 2147483647").splitlines()
    )
    path.write_text(f"{path.read_text()}manifests:\n  - |\n{block}")
    problem = "Deployment default/web: replicas: 2147483647 pods, and one object may have 1000000 in a run; lower it"
    assert any(line.endswith(problem) for line in refused(path))


def test_a_manifest_file_that_is_missing_or_no_text_is_reported(tmp_path):
    """A path under manifests is named with what is wrong with it."""
    (line,) = refused(written(tmp_path, {"manifests": ["gone.yaml"]}))
    assert "manifests[0]" in line
    assert "gone.yaml: cannot be read: No such file" in line
    (tmp_path / "binary.yaml").write_bytes(b"\xff")
    (line,) = refused(written(tmp_path, {"manifests": ["binary.yaml"]}))
    assert "binary.yaml: not UTF-8 text" in line


def test_a_manifest_may_be_json_on_one_line(tmp_path):
    """What a program has written is no name of a file."""
    line = json.dumps(yaml.safe_load(DEPLOYMENT))
    assert load_scenario(written(tmp_path, {"manifests": [line]})).manifests == (line,)
    (problem,) = refused(written(tmp_path, {"manifests": [line.replace("replicas", "replicaz")]}))
    assert "Deployment web: spec.replicaz: unknown field" in problem


def start_world(scenario: Scenario, base: Path) -> None:
    async def main(clock):
        end = Instant(start_of(scenario) + parse_duration(scenario.duration))
        World(scenario, clock, base=base, end=end, seed=1, recorder=NullRecorder())

    run_virtual(main, start=start_of(scenario))


TRACE_MISTAKES = [
    (["0,1", "60,1", "180,1"], "t.csv:3: 1 missing between"),
    (["0,1", "60,1", "30,1"], "t.csv:3: time .* does not come after"),
    (["0,1", "60,-1"], "t.csv:2: -1 is negative"),
    (["0,1", "60,nan"], "t.csv:2: nan is not a finite number"),
    (["0,1", "60,1e300"], "t.csv:2: 1e300 is more than 1e\\+12"),
    (["0,1", "60,x"], "t.csv:2: 'x' is not a number"),
    (["0,1", "60,1"], "t.csv: covers .* shorten the run"),
    (["time;v", "0;1", "60;1"], "t.csv:3: columns parted by semicolons; write `time,value`"),
    (["0\t1", "60\t1"], "t.csv:2: columns parted by tabs; write `time,value`"),
    ([], "t.csv: empty"),
]


@pytest.mark.parametrize(("lines", "message"), TRACE_MISTAKES)
def test_a_bad_trace_stops_the_run_before_it_begins(tmp_path, lines, message):
    """A trace with a gap, out of order, negative, not a number or too short is reported with file and line."""
    (tmp_path / "t.csv").write_text("\n".join(lines))
    scenario = load_scenario(written(tmp_path, {"services/0/load": {"trace": "t.csv"}}))
    with pytest.raises(TraceError, match=message):
        start_world(scenario, tmp_path)
