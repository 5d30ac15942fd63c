"""Nodes that fail, disks that are full, Ctrl-C, and records that were tampered with."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.explain.records import Record
from kubetide.runtime.recording.records import RecordError, segments
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import FaultSpec

RUN = Path("unused")


def run(out, **options):
    warn = options.pop("warn", pytest.fail)
    return run_simulation(small(**options), base=RUN, out=out, seed=1, warn=warn)


@pytest.mark.parametrize("group", ["", "general"])
def test_a_node_that_fails_for_good_is_removed(tmp_path, group):
    """A silent node goes after 20 minutes, as empty: the control plane has evicted its pods after 5.

    They never end there, but pods that have been terminating for long do not count, which is upstream's rule; their
    replacements run on the other node.
    """
    fault = FaultSpec(kind="node-failure", group=group, start="1m")
    result = run(tmp_path, duration="25m", faults=(fault,), nodes=2)
    ready = result.timeline.nodes["general"]
    assert ready[:3] == [2, 2, 2]
    assert set(ready[6:]) == {1}
    reported = [mark for mark in result.timeline.marks if mark.loop == "nodes"]
    assert "goes: empty and unneeded for" in reported[0].title
    assert [mark.change for mark in reported] == [0, -1]
    minutes_in = [(mark.at - result.timeline.start) // 60_000_000_000 for mark in reported]
    assert minutes_in == [19, 20]
    assert (result.summary.taint_evictions, result.summary.evictions) == (1, 0)
    assert result.violations == ()
    assert result.unsettled == ()
    assert replay(tmp_path).differences == ()


def test_a_node_that_recovers_comes_back(tmp_path):
    """Between start and end one node less is Ready; after the end all are, with no node bought or removed."""
    fault = FaultSpec(kind="node-failure", start="1m", end="4m")
    ready = run(tmp_path, duration="6m", faults=(fault,)).timeline.nodes["general"]
    assert ready[:3] == [3, 3, 3]
    assert set(ready[5:15]) == {2}
    assert set(ready[17:]) == {3}


def test_machines_without_a_ready_node_count_for_the_cost_without_scaling(tmp_path):
    """A machine that never joins, or whose node has failed, is paid for: the group had that size."""
    failed = FaultSpec(kind="node-failure")
    summary = run(tmp_path, duration="10m", faults=(failed,), nodes=1).summary
    assert summary.groups[0].nodes_max == 0
    assert summary.cost_unscaled == summary.cost == pytest.approx(0.096 / 6)
    lost = small(duration="20m", faults=(FaultSpec(kind="boot-failure"),), nodes=1)
    busy = replace(lost, manifests=(lost.manifests[0].replace("cpu: 200m", "cpu: 1500m"),))
    timeline = run_simulation(busy, base=RUN, out=None, seed=1, warn=str).timeline
    assert max(timeline.nodes["general"]) == 1
    assert timeline.largest["general"] > 1
    assert summarize("lost", timeline).cost_unscaled == pytest.approx(
        0.096 / 3 * timeline.largest["general"], abs=1e-4
    )


def test_a_failure_without_a_node_does_nothing(tmp_path):
    """Where no node is Ready, and where the draw misses, none fails."""
    fault = FaultSpec(kind="node-failure", start="1m", probability=1e-9)
    assert set(run(tmp_path, duration="3m", faults=(fault,)).timeline.nodes["general"]) == {3}


def test_one_flipped_number_is_the_first_difference(tmp_path):
    """A record whose commands were changed is reported with loop, tick and phase; the other loop agrees."""
    run(tmp_path, duration="10m")
    path = segments(tmp_path, "horizontal")[0]
    lines = path.read_bytes().splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if i and b'"replicas"' in commands(line))
    record = msgspec.json.decode(lines[at], type=Record)
    before = bytes(record.commands)
    place = next(i for i in range(before.index(b'"replicas"'), len(before)) if before[i : i + 1].isdigit())
    flipped = before[:place] + (b"1" if before[place : place + 1] != b"1" else b"2") + before[place + 1 :]
    assert lines[at].count(before) == 1
    lines[at] = lines[at].replace(before, flipped)
    path.write_bytes(b"".join(lines))
    (difference,) = replay(tmp_path).differences
    assert (difference.loop, difference.tick, difference.phase) == ("horizontal", record.tick, record.phase)
    assert difference.part == "commands"
    assert (difference.recorded, difference.decided) == (flipped, before)
    assert str(difference).startswith(
        f"horizontal tick {record.tick} phase {record.phase}: commands differ at byte {place}:"
    )


def commands(line: bytes) -> bytes:
    return bytes(msgspec.json.decode(line, type=Record).commands)


def test_a_disk_that_fills_up_does_not_end_the_run(tmp_path, monkeypatch):
    """When records cannot be written the run goes on, with one warning; what it does is the same."""
    whole = run(tmp_path / "a", duration="10m")
    said = []

    def full(_file, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    result = run(tmp_path / "b", duration="10m", warn=said.append)
    monkeypatch.undo()
    assert len(said) == 1
    assert "decision records cannot be written" in said[0]
    assert "--out" in said[0]
    assert result.summary == whole.summary
    assert result.timeline.marks == whole.timeline.marks


def test_a_folder_that_cannot_be_written_stops_before_the_run(tmp_path):
    """An output path below a file is refused before anything is simulated, with the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RecordError, match="choose another folder with --out"):
        run(tmp_path / "file" / "out")


LIVE = """
import sys
from pathlib import Path
from kubetide.simulate.run import LiveRun
from kubetide.simulate.scenarios.scenario import start_of
from kubetide.units.time import after, hours
from tests.simulate.worlds import small

scenario = small(duration="24h")
told = []

def sampled(timeline):
    if len(timeline.pending) == 8:
        print("going", flush=True)

live = LiveRun(
    scenario, base=Path(), out=Path(sys.argv[1]), seed=1, speed=1200.0, until=after(start_of(scenario), hours(24)),
    warn=sys.exit, on_sample=sampled, on_mark=told.append,
)
result = live.run()
print(result.summary.name, len(result.timeline.pending), result.violations, flush=True)
"""


def test_ctrl_c_ends_a_live_run_cleanly(tmp_path):
    """SIGINT stops a run at once: the result so far is given, exit code 0, nothing on stderr, records replay."""
    root = Path(__file__).parents[2]
    with subprocess.Popen(
        [sys.executable, "-c", LIVE, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"},
    ) as process:
        assert process.stdout.readline() == "going\n"
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=30)
    assert (process.returncode, error) == (0, "")
    name, steps, violations = out.split(maxsplit=2)
    assert (name, violations.strip()) == ("small", "()")
    assert 8 <= int(steps) < 24 * 240
    replayed = replay(tmp_path)
    assert replayed.differences == ()
    # How many ticks there were depends on the machine; that those there were decide the same does not.
    assert replayed.records["nodes"] > 0
