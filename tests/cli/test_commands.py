"""The commands as a person calls them."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.simulate.made import timeline
from tests.simulate.worlds import small

from kubetide.cli.common.output import finish
from kubetide.cli.main import cli
from kubetide.cli.up import PlainView
from kubetide.runtime.recording.folder import is_running
from kubetide.runtime.timing.clock import machine_time
from kubetide.simulate.outcome.summary import Summary, summarize
from kubetide.simulate.outcome.timeline import Timeline
from kubetide.simulate.run import RunResult, run_simulation
from kubetide.simulate.scenarios.scenario import Scenario, load_scenario, start_of
from kubetide.simulate.scenarios.shipped import scenario_path
from kubetide.simulate.scenarios.spec import FAULT_KINDS
from kubetide.units.time import minutes

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "from-zero-wrong-catalogue.yaml"
PATIENCE_S = 300
"""For what comes soon, on a machine that is busy."""

KUBETIDE = [sys.executable, "-c", "from kubetide.cli.main import main; main()"]


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*KUBETIDE, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.parametrize(
    "name",
    [
        "up",
        "simulate",
        "what-if",
        "capture",
        "sweep",
        "tune",
        "test",
        "ui",
        "examples",
        "explain",
        "status",
        "doctor",
        "replay",
    ],
)
def test_every_command_helps_with_examples(name):
    """The help page of a command says what it is for and shows how it is called."""
    result = CliRunner().invoke(cli, [name, "--help"])
    assert result.exit_code == 0
    assert "Examples:\n" in result.output
    assert f"    kubetide {name} " in result.output


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


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_run_cleanly(tmp_path, number):
    """An interrupted run prints the summary of what there was, and its records replay."""
    with subprocess.Popen(
        [*KUBETIDE, "up", "--speed", "600", "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        while " because " not in run.stdout.readline():
            assert run.poll() is None
        run.send_signal(number)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert (run.returncode, err) == (0, "")
    assert "web-shop   2026-03-02 11:00 UTC" in out
    assert call("replay", tmp_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_a_simulation_with_its_results(tmp_path, number):
    """An interrupted `simulate` holds its folder until then, leaves its files, says when, and exits with 130."""
    with subprocess.Popen(
        [*KUBETIDE, "simulate", EXAMPLE.with_name("web-shop.yaml"), "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        while not is_running(tmp_path) or not list(tmp_path.glob("records/nodes-*.jsonl")):
            assert run.poll() is None
            time.sleep(0.05)
        second = call("simulate", EXAMPLE, "--out", tmp_path)
        run.send_signal(number)
        out, err = run.communicate(timeout=PATIENCE_S)
    assert second.returncode == 1
    assert f"another run is writing to {tmp_path}" in second.stderr
    assert "--out" in second.stderr
    assert run.returncode == 130
    assert re.fullmatch(r"interrupted at \d\d:\d\d of the run \(2026-03-02\); .*\n", err)
    assert out.startswith("web-shop   2026-03-02 00:00 UTC")
    assert (tmp_path / "report.html").exists()
    assert call("replay", tmp_path).returncode == 0


def test_records_that_are_not_there_are_not_pointed_to(tmp_path, capsys):
    """A run that ended before its first decision says that there are no records, and leaves its results whole."""
    line = timeline(steps=0)
    finish(RunResult(line, summarize("shop", line), (), (), interrupted=True), tmp_path)
    assert "records  none: the run ended before the first decision" in capsys.readouterr().out
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.json", "timeline.json"}


@pytest.mark.parametrize(
    "error", [BrokenPipeError(errno.EPIPE, "Broken pipe"), OSError(errno.ENOSPC, "No space")]
)
def test_the_files_of_a_run_do_not_wait_for_a_reader(tmp_path, monkeypatch, error):
    """A summary that cannot be printed, because `head` has read enough or the disk is full, costs no file."""
    line = timeline(steps=4)

    class Unread(io.StringIO):
        def write(self, _text: str) -> int:
            raise error

    monkeypatch.setattr(sys, "stdout", Unread())
    with pytest.raises(OSError, match=error.strerror):
        finish(RunResult(line, summarize("shop", line), (), ()), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "summary.json", "timeline.json"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_sentence():
    """An answer that standard output cannot take ends with a sentence and status 1, not with a traceback."""
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            [*KUBETIDE, "examples"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert run.returncode == 1
    assert run.stderr == "kubetide: cannot write standard output: No space left on device; free space there\n"


@pytest.mark.slow
def test_up_ends_when_nobody_reads(tmp_path):
    """When its reader closes the pipe, `up` stops as on Ctrl-C: no traceback, and the records are complete."""
    with subprocess.Popen(
        [*KUBETIDE, "up", "--speed", "600", "--out", tmp_path],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as run:
        run.stdout.readline()
        run.stdout.close()
        err = run.stderr.read()
        run.wait(timeout=PATIENCE_S)
    assert "Traceback" not in err
    assert (tmp_path / "report.html").exists()
    assert call("replay", tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["simulate", "missing.yaml"], "missing.yaml: cannot be read"),
        (["up", str(EXAMPLE), "--until", "soon"], "'soon' is neither a time"),
        (["up", str(EXAMPLE), "--until", "0s"], "not after the start"),
        *(
            (["up", str(EXAMPLE), "--speed", speed], "greater than 0 and at most 100,000")
            for speed in ("0", "nan", "inf", "1e30")
        ),
        (["simulate", str(EXAMPLE), "--trace", "nope.csv"], "--trace: there is no file nope.csv"),
        (["replay", "nowhere"], "no records under nowhere"),
        (["advise", str(EXAMPLE), "--top", "-1"], "-1 is not in the range"),
    ],
)
def test_errors_are_one_line_with_the_fix(arguments, words, tmp_path):
    """A mistake of the caller gives one sentence and no traceback."""
    run = subprocess.run(
        [*KUBETIDE, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert run.returncode in {1, 2}
    assert words in run.stderr
    assert "Traceback" not in run.stderr


def test_the_shipped_scenarios_are_read(tmp_path):
    """Every example is a scenario, and the one that `up` plays ships with the package."""
    from kubetide.cli.up import SHIPPED

    trace = tmp_path / "trace.csv"
    trace.touch()
    found = {}
    for path in ROOT.glob("examples/*.yaml"):
        if "manifests" not in path.name:
            found[path.stem] = load_scenario(path, trace=trace if "trace:" in path.read_text() else None).name
    assert found.pop("autothrottle") == "autothrottle-diurnal-2"
    assert sorted(found) == [
        "bad-day",
        "capacity-buffer",
        "elastic-day",
        "from-zero-wrong-catalogue",
        "gpu-claims",
        "hpa-and-vpa",
        "morning-ramp",
        "new-groups",
        "playground",
        "provisioning-request",
        "queue-workers",
        "stock-out",
        "vertical",
        "vpa-day",
        "web-shop",
        "worldcup98",
    ]
    assert all(stem == name for stem, name in found.items())
    assert SHIPPED.samefile(ROOT / "examples" / "web-shop.yaml")


def test_examples_are_played_and_copied_by_name(tmp_path, monkeypatch):
    """From any folder: the list names all, a copy has all that it needs, and a near miss is reported."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(cli, words)

    listed = run("examples")
    assert listed.exit_code == 0
    names = [line.split()[0] for line in listed.output.splitlines()[:-2]]
    assert names == sorted(names)
    assert {"web-shop", "crontab", "bad-day", "autothrottle"} <= set(names)
    assert "Needs --trace requests_per_minute" in listed.output
    for name in names:
        assert run("examples", name).exit_code == 0
        trace = EXAMPLE.with_name("diurnal-2.txt.gz") if name == "worldcup98" else None
        path = tmp_path / name / f"{name}.yaml"
        path = path.with_name("scenario.yaml") if path.with_name("scenario.yaml").exists() else path
        load_scenario(path, trace=trace)
    assert "is there already" in str(run("examples", "web-shop").exception)
    assert scenario_path(Path("web-shop")) == Path("web-shop/web-shop.yaml")
    near = str(run("simulate", "web-shp").exception)
    assert near == "web-shp: there is no such file and no example of that name; did you mean `web-shop`?"
    unknown = run("simulate", "worldcup98")
    assert "It is to be had from https://" in str(unknown.exception)


@pytest.mark.slow
def test_an_example_is_played_by_its_name(tmp_path):
    """`simulate NAME` needs no path, and an example with a shipped trace needs none either."""
    run = CliRunner().invoke(cli, ["simulate", "autothrottle", "--out", str(tmp_path)])
    assert (run.exit_code, run.output.startswith("autothrottle-diurnal-2")) == (0, True)


def test_no_text_installs_what_no_index_has():
    """Until the package is on an index, an extra is installed by the names of its packages."""
    texts = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.py")]
    assert [str(path) for path in texts if re.search(r"pip install\s+['\"]?kubetide", path.read_text())] == []


def test_a_scenario_may_start_now(tmp_path):
    """`start: now` is when the file is read, and the warm-up over; a run with persisted state requires a fixed time.

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


def fields_of(part: type[msgspec.Struct]) -> set[str]:
    return set(part.__struct_encode_fields__)


def test_every_field_of_a_scenario_is_documented():
    """docs/scenarios.md names every field that a scenario may have, and every fault."""
    page = (ROOT / "docs" / "scenarios.md").read_text()
    parts = [Scenario, *Scenario.__mro__[1].__subclasses__()]
    names = set().union(*(fields_of(part) for part in parts))
    names.update(FAULT_KINDS)
    assert not [name for name in sorted(names) if f"`{name}`" not in page]


@pytest.mark.parametrize("address", ["my-shop.yaml", "127.0.0.1", "127.0.0.1:123456", ":80"])
def test_serving_requires_an_address(address, tmp_path):
    """`up --serve` says how an address is written, before anything is run."""
    result = CliRunner().invoke(cli, ["up", "--serve", address, "--out", str(tmp_path)])
    assert "write HOST:PORT" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_explain_takes_the_names_that_it_suggests(tmp_path):
    """A pod or an HPA is named with its namespace, in one word or in two."""
    scenario = small(duration="1m")
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)

    def explain(*words):
        return CliRunner().invoke(cli, ["explain", "hpa", *words, "--out", str(tmp_path)])

    assert "hpa default/web at" in explain("default/web").output
    assert explain("default/web").output == explain("web").output
    assert explain("default/web", "-n", "default").exit_code == 0
    refused = explain("default/web", "-n", "shop")
    assert (refused.exit_code, "names another namespace than --namespace shop" in refused.output) == (2, True)
    suggested = re.search(r"did you mean ([\w/]+)\?", str(explain("wbe").exception))
    assert suggested is not None
    assert explain(suggested[1]).exit_code == 0
