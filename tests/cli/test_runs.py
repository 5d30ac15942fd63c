"""A run by `simulate` or `up`: its lines, its files, its pace and its start."""

from __future__ import annotations

import json
import re
import socket

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.cli.calling import EXAMPLE, call
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.cli.up import PlainView
from kubetide.runtime.timing.clock import machine_time
from kubetide.simulate.outcome.summary import Summary, summarize
from kubetide.simulate.outcome.timeline import Timeline
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.units.time import minutes


@pytest.mark.slow
def test_a_run_leaves_its_files(tmp_path):
    """`simulate` prints the summary and leaves report, summary, timeline and records that replay."""
    run = call("simulate", EXAMPLE, "--out", tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith(
        "from-zero-wrong-catalogue   2026-03-02 00:00 UTC, 1.00 h, after 3 min of warm-up\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {
        "report.html",
        "summary.json",
        "timeline.json",
        "records",
    }
    summary = msgspec.json.decode((tmp_path / "summary.json").read_bytes(), type=Summary)
    figures = msgspec.json.decode((tmp_path / "timeline.json").read_bytes(), type=Timeline)
    assert summarize(summary.name, figures) == summary
    data = (
        (tmp_path / "report.html").read_text().partition('id="kubetide-data">')[2].partition("</script>")[0]
    )
    assert msgspec.convert(json.loads(data)["summary"]["summary"], Summary) == summary

    again = call("replay", tmp_path)
    assert again.returncode == 0
    assert again.stdout.count("all bytes equal") == 2
    assert "early" not in again.stdout

    nodes = tmp_path / "records" / "nodes-0001.jsonl"
    lines = nodes.read_bytes().splitlines(keepends=True)
    nodes.write_bytes(b"".join(lines[:-20]))
    cut = call("replay", tmp_path)
    assert (cut.returncode, cut.stderr) == (0, "")
    last = json.loads(lines[-21])
    assert f"nodes: records end early, at tick {last['tick']}, 2026-03-02T00:" in cut.stdout
    nodes.write_bytes(b"".join(lines[:-20]) + lines[-20][:100])
    torn = call("replay", tmp_path)
    assert torn.returncode == 1
    assert "the run was cut within a line" in torn.stderr


@pytest.mark.slow
def test_replay_shows_where_a_changed_record_parts(tmp_path):
    """A record whose answer was changed is found, and the exit status says so."""
    call("simulate", EXAMPLE, "--out", tmp_path)
    path = tmp_path / "records" / "nodes-0001.jsonl"
    text = path.read_text()
    assert '"delta":1' in text
    path.write_text(text.replace('"delta":1', '"delta":2', 1))
    again = call("replay", tmp_path)
    assert again.returncode == 1
    assert "then a difference" in again.stdout
    assert "commands differ at byte" in again.stderr


@pytest.mark.slow
def test_up_prints_a_line_a_decision(tmp_path):
    """Without a terminal `up` writes each decision with its reasons, then the summary."""
    run = call("up", EXAMPLE, "--speed", 600, "--until", "25m", "--out", tmp_path)
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    assert "600 times real time" in lines[0]
    bought = [line for line in lines if "group wide was increased from 0 to 1" in line]
    assert len(bought) == 1
    assert " because " in bought[0]
    assert bought[0].split()[1] == "nodes"
    assert [line.split()[1].rstrip(",") for line in lines[-3:]] == [
        str(tmp_path / name) for name in ("report.html", "summary.json", "records")
    ]


@pytest.mark.slow
def test_up_with_the_dashboard_ends_by_itself(tmp_path):
    """As `make run` calls it, away from a terminal: the address comes first, and nothing stays behind the run."""
    run = call("up", EXAMPLE, "--ui", "--speed", 600, "--until", "5m", "--out", tmp_path)
    assert run.returncode == 0
    found = re.fullmatch(r"kubetide: dashboard (http://127\.0\.0\.1:(\d+)/)\?token=\S+\n", run.stderr)
    assert found, run.stderr
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(found[2])))
    assert (tmp_path / "report.html").exists()


@pytest.mark.slow
def test_no_speed_is_ahead_of_the_work(tmp_path):
    """At a speed that no machine reaches, `up` gives the figures of `simulate` and says how fast the run was."""
    call("simulate", EXAMPLE, "--out", tmp_path / "virtual")
    run = call("up", EXAMPLE, "--speed", 100_000, "--until", "1h", "--out", tmp_path / "live")
    assert (run.returncode, run.stderr) == (0, "")
    assert re.search(
        r"^pace     ran at [\d,]+x, not 100,000x: the clock waited for the work", run.stdout, re.MULTILINE
    )
    summaries = [(tmp_path / name / "summary.json").read_bytes() for name in ("virtual", "live")]
    assert summaries[0] == summaries[1]


def test_a_scenario_may_start_now(tmp_path):
    """`start: now` is the time of reading the file, plus the warm-up; a run with persisted state requires a fixed time.

    So the cluster's clock is the machine's: `kubetide run` beside a served cluster sees samples that are fresh.
    """
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump(msgspec.to_builtins(msgspec.structs.replace(small(), start="now"))))
    before = machine_time()
    assert before - 10**9 <= start_of(load_scenario(path)) - minutes(3) <= machine_time()
    refused = CliRunner().invoke(cli, ["up", str(path), "--state", str(tmp_path / "kept")])
    assert (refused.exit_code, "starts now" in refused.output) == (2, True)


@pytest.mark.parametrize(
    ("speed", "said"), [(1, "real time, after 3m0s of warm-up;"), (600, "real time; Ctrl-C")]
)
def test_a_long_warm_up_is_announced(speed, said):
    """At the speed of real time nothing is decided for three minutes."""
    assert said in PlainView(small(), speed).heading
