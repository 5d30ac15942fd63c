"""`kubetide status` on recorded runs: the page, its data, and a loop that another package brings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.runtime.recording.folder import claimed
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.simulate.answers.status import status_of
from kubetide.simulate.answers.when import read_moment, start_of_records
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import FaultSpec, load_scenario

SCENARIO = Path(__file__).parents[2] / "examples" / "from-zero-wrong-catalogue.yaml"


@pytest.fixture(scope="module")
def waiting(tmp_path_factory):
    """The example of a wrong catalogue until its big pods have waited for ten minutes."""
    out = tmp_path_factory.mktemp("waiting")
    scenario = replace(load_scenario(SCENARIO), duration="10m")
    run_simulation(scenario, base=SCENARIO.parent, out=out, seed=1, warn=pytest.fail)
    return out


@pytest.fixture(scope="module")
def stuck(tmp_path_factory):
    """A service that needs more nodes than the cloud has."""
    out = tmp_path_factory.mktemp("stuck")
    scenario = small(duration="15m", nodes=1, faults=(FaultSpec(kind="stock-out", start="0s"),))
    larger = tuple(one.replace("cpu: 200m", "cpu: 1500m") for one in scenario.manifests)
    scenario = replace(scenario, manifests=larger)
    run_simulation(scenario, base=out, out=out, seed=1, warn=pytest.fail)
    return out


def test_the_page_has_loops_groups_hpas_and_what_waits(waiting):
    """Each loop has its last tick; each table comes from the loop that knows its subject."""
    status, tables = status_of(waiting)
    assert [one.name for one in status.loops] == ["horizontal", "nodes"]
    assert {one.state for one in status.loops} == {"ended"}
    assert status.loops[1].last_tick == "2026-03-02T00:09:50Z"
    assert [table.title for table in tables] == [
        "hpas",
        "node groups",
        "waiting pods",
        "nodes that go or are blocked",
    ]
    (hpa,) = status.tables["hpas"]
    assert (hpa["hpa"], hpa["target"], hpa["current"]) == ("default/thumbs", "Deployment/default/thumbs", 2)
    small_group, wide = status.tables["node groups"]
    assert (small_group["size"], small_group["max"], small_group["state"]) == (1, 1, "at its maximum")
    assert (wide["size"], wide["ready"], wide["upcoming"], wide["price/h"]) == (0, 0, 0, 0.192)
    (pods,) = status.tables["waiting pods"]
    assert pods["count"] == 2
    assert "lower memory request from 8Gi to <= 3584Mi (group wide)" in pods["why"]


def test_the_page_begins_with_what_waits(waiting, stuck):
    """A sentence for each table in which something waits or is held back, and one where nothing is."""
    assert status_of(waiting)[0].answer == ("2 pods wait for a node, the longest for 12m50s.",)
    groups, pods = status_of(stuck)[0].answer
    assert groups == "Groups without new nodes for now: general."
    assert pods.startswith("1 pod waits for a node, the longest for ")
    page = CliRunner().invoke(cli, ["status", "--out", str(stuck)]).output
    assert page.splitlines()[1:3] == [f"  {groups}", f"  {pods}"]


def test_a_page_without_anything_to_do_says_so(tmp_path):
    """A run in which all pods have their nodes."""
    run_simulation(small(), base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    assert status_of(tmp_path)[0].answer == ("Nothing waits, and nothing failed in the last hour.",)


def test_the_page_of_an_earlier_moment(waiting):
    """Its time, its decisions, and questions about the same moment; the end alone can be watched."""
    words = ["status", "--out", str(waiting), "--at", "00:05"]
    page = CliRunner().invoke(cli, words).output
    assert page.startswith("at 2026-03-02T00:05:00Z")
    asked = f" --at 2026-03-02T00:05:00Z --out {waiting}"
    assert [line.endswith(asked) for line in page.splitlines() if "ask: kubetide explain" in line] == [True]
    refused = CliRunner().invoke(cli, [*words, "--watch"])
    assert "--watch shows the end of the records" in refused.output


def test_a_time_before_the_run_names_its_beginning(waiting):
    """Nobody has to guess which time can be asked about."""
    with pytest.raises(RecordError, match="the run begins at 2026-03-02T00:00:00Z"):
        status_of(waiting, read_moment("2026-03-01T12:00:00Z", start_of_records(waiting)))


def test_a_loop_that_is_silent_says_since_when(waiting, tmp_path):
    """Where a loop's records end and those of another go on, its state says so while the run goes on."""
    (tmp_path / "records").mkdir()
    with claimed(tmp_path):
        for loop, share in (("horizontal", 1), ("nodes", 4)):
            lines = next((waiting / "records").glob(f"{loop}-*.jsonl")).read_bytes().splitlines(keepends=True)
            text = b"".join(lines[: (len(lines) - 1) // share])
            (tmp_path / "records" / f"{loop}-0001.jsonl").write_bytes(text)
        status, _ = status_of(tmp_path)
    states = {one.name: (one.state, one.last_tick) for one in status.loops}
    assert states["horizontal"][0] == "running"
    assert states["nodes"][0] == f"silent since {states['nodes'][1]}"
    assert status.answer[0] == f"Loop nodes is {states['nodes'][0]}."


def test_a_group_in_backoff_says_until_when(stuck):
    """The group's row has the last tick's memory of failures."""
    status, _ = status_of(stuck)
    (row,) = status.tables["node groups"]
    assert row["state"].startswith("backoff until 2026-03-02T")


def test_the_last_decisions_are_at_most_ten_in_order(stuck):
    """They are those of all loops together, by time, without what only says again what was said."""
    status, _ = status_of(stuck)
    times = [one.at for one in status.decisions]
    assert 0 < len(times) <= 10
    assert times == sorted(times)
    assert {one.loop for one in status.decisions} <= {"horizontal", "nodes"}


def test_a_run_that_was_cut_short_is_not_shown_as_running(waiting, tmp_path):
    """Without the last line of a run that ended, the records are of one that holds the folder, or was cut short."""
    folder = tmp_path / "records"
    folder.mkdir()
    for path in (waiting / "records").glob("*.jsonl"):
        lines = path.read_bytes().splitlines(keepends=True)
        (folder / path.name).write_bytes(b"".join(lines[:-1]) + lines[-2][:20])
    status, _ = status_of(tmp_path)
    assert {one.state for one in status.loops} == {"cut short"}
    assert status.answer[:2] == ("Loop horizontal is cut short.", "Loop nodes is cut short.")
    with claimed(tmp_path):
        assert {one.state for one in status_of(tmp_path)[0].loops} == {"running"}
    assert status.tables["hpas"] == status_of(waiting)[0].tables["hpas"]


def test_only_the_newest_segments_are_read(waiting):
    """``last`` begins at a whole state, with the newest segments."""
    (only,) = (waiting / "records").glob("nodes-*.jsonl")
    assert only.name == "nodes-0001.jsonl"
    assert next(read_records(waiting, "nodes", last=1)).full
    assert len(list(read_records(waiting, "nodes", last=1))) == len(list(read_records(waiting, "nodes")))


def test_a_folder_without_records_is_named(tmp_path):
    """A folder without records is reported as one."""
    with pytest.raises(RecordError, match="--out"):
        status_of(tmp_path)


def test_the_command_prints_text_json_and_yaml(waiting):
    """The three forms have the same content, and the text has no line that a page would break."""
    page = CliRunner().invoke(cli, ["status", "--out", str(waiting)]).stdout
    assert page.startswith("at 2026-03-02T00:09:50Z\n  2 pods wait")
    assert "\nwaiting pods\n  pods of" in page
    assert "\nnodes that go or are blocked: none\n" in page
    as_json = json.loads(CliRunner().invoke(cli, ["status", "--out", str(waiting), "-o", "json"]).stdout)
    as_yaml = yaml.safe_load(CliRunner().invoke(cli, ["status", "--out", str(waiting), "-o", "yaml"]).stdout)
    assert as_json == as_yaml
    assert as_json["tables"]["waiting pods"][0]["count"] == 2
    assert as_json["loops"][0]["lastTick"] == "2026-03-02T00:09:45Z"


def test_an_hpa_that_never_decided_desires_nothing(tmp_path):
    """Where its metric fails from the beginning, nobody reads that it wants no pods at all."""
    scenario = small(duration="3m")
    bare = tuple(
        one.replace("requests: {cpu: 200m, memory: 128Mi}", "limits: {}") for one in scenario.manifests
    )
    scenario = replace(scenario, manifests=bare)
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)
    (row,) = status_of(tmp_path)[0].tables["hpas"]
    assert (row["current"] > 0, row["desired"]) == (True, row["current"])
    assert "missing request for cpu" in row["limited by"]


def test_what_was_last_done_in_vain_has_its_time(tmp_path):
    """A failure stays on the page for an hour; its time says whether it is over."""
    rules = """apiVersion: autoscaling.cloud.tencent.com/v1
kind: HorizontalPodCronscaler
metadata: {name: morning}
spec:
  scaleTarget: {apiVersion: apps/v1, kind: Deployment, name: web, namespace: default}
  crons: [{name: up, schedule: "0 1 0 * * *", targetSize: 5}]
"""
    refused = FaultSpec(kind="api-error", start="50s", end="85s")
    scenario = small(duration="4m", faults=(refused,))
    scenario = replace(scenario, loops=("schedules",), manifests=(*scenario.manifests, rules))
    run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=lambda _: None)
    status = status_of(tmp_path)[0]
    (loop,) = status.loops
    assert loop.last_failure_at == "2026-03-02T00:01:20Z"
    assert status.answer[0] == f"Loop schedules, last in vain at 2026-03-02T00:01:20Z: {loop.last_failure}"
