"""Claims for GPUs in a run: they wait, nodes are bought for them, and go when the load ends."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpu-claims.yaml"


def test_nodes_with_devices_come_and_go_with_the_claims(tmp_path):
    """From none to three nodes with two devices each and back to one; every pod that ran had a device of its own."""
    reported = []
    result = run_simulation(
        load_scenario(EXAMPLE), base=EXAMPLE.parent, out=tmp_path, seed=1, warn=reported.append
    )
    assert reported == []
    timeline = result.timeline
    assert timeline.nodes["gpu"][0] == 0
    assert max(timeline.nodes["gpu"]) == 3
    assert timeline.nodes["gpu"][-1] == 1
    assert timeline.pending[-1] == 0
    assert max(timeline.services["inference"].ready) == 6
    seen = {}
    for record in read_records(tmp_path, "nodes"):
        delta = msgspec.json.decode(record.state)
        if record.full:
            seen.clear()
        for _, *key in (delta.get("gone") or {}).get("devices", ()):
            seen.pop(tuple(key), None)
        for claim in (delta.get("devices") or {}).get("claims", ()):
            devices = ((claim.get("status") or {}).get("allocation") or {}).get("devices") or {}
            held = [(one["pool"], one["device"]) for one in devices.get("results", ())]
            seen[claim["metadata"]["namespace"], claim["metadata"]["name"]] = held
        used = [device for held in seen.values() for device in held]
        assert len(used) == len(set(used)), used
    assert len(used) == 1
    assert replay(tmp_path).differences == ()


@pytest.mark.parametrize(
    ("devices", "problem"),
    [
        ({"gpu.test": 0}, "devices[gpu.test]: 0 must be between 1 and 128"),
        ({"gpu.test": 129}, "devices[gpu.test]: 129 must be between 1 and 128"),
        ({"Gpu Test": 1}, "a lowercase RFC 1123 subdomain must consist of"),
    ],
)
def test_devices_of_a_group_are_checked(tmp_path, devices, problem):
    """As many as one slice holds, under the name of a driver."""
    text = EXAMPLE.read_text().replace("{gpu.example.com: 2}", msgspec.json.encode(devices).decode())
    path = tmp_path / "gpu-claims.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as found:
        load_scenario(path)
    assert problem in str(found.value)
