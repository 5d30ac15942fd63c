"""`kubetide explain` on a recorded run: the texts a person reads, held as they are.

To renew the golden texts after a change of wording: KUBETIDE_RENEW_GOLDEN=1 pytest tests/simulate/test_why.py
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec.structs import replace
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.explain.records import Record
from kubetide.nodes.reasons import VOCABULARY as NODES
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.recording.records import RecordError, read_records
from kubetide.simulate.answers.when import read_moment, start_of_records
from kubetide.simulate.answers.why import WhyError, explain_object
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import FaultSpec, load_scenario
from kubetide.units.time import format_rfc3339, parse_rfc3339

HERE = Path(__file__).parent
SCENARIO = HERE.parents[1] / "examples" / "from-zero-wrong-catalogue.yaml"
START = parse_rfc3339("2026-03-02T00:00:00Z")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The example of a catalogue that gives a type 4 GiB while its machines have 16."""
    out = tmp_path_factory.mktemp("wrong-catalogue")
    result = run_simulation(load_scenario(SCENARIO), base=SCENARIO.parent, out=out, seed=1, warn=pytest.fail)
    assert result.violations == ()
    return out


def why(run: Path, kind: str, name: str, at: str | None = None) -> str:
    moment = None if at is None else read_moment(at, START)
    return explain_object(run, kind, name, namespace="default", at=moment)


def report_pod(run: Path) -> str:
    """The first pod of the Deployment that needs 8 GiB."""
    text = (run / "records" / "nodes-0001.jsonl").read_text()
    return "report-" + text.split('"name":"report-', 1)[1].split('"', 1)[0]


def same_as_golden(name: str, text: str) -> None:
    path = HERE / "golden" / f"{name}.txt"
    if os.environ.get("KUBETIDE_RENEW_GOLDEN"):
        path.write_text(text + "\n")
    assert text + "\n" == path.read_text()


def test_from_zero_the_catalogue_refuses_and_is_named(run):
    """A pod of 8 GiB is refused by the group at zero, and the reason names the catalogue and its 4 GiB."""
    text = why(run, "pod", report_pod(run), "00:10")
    assert "catalogue of the embedded cloud, instance type wide.xlarge: 4 CPU, 4Gi memory" in text
    assert "8Gi requested, 3584Mi free of 3584Mi allocatable" in text
    assert "verified by deciding again" in text
    same_as_golden("wrong-catalogue-refused", text)


def test_after_a_live_node_the_pod_is_accepted(run):
    """Once a node of the group was seen, the pod has its place, and the group shows both numbers."""
    assert "It is on node wide-" in why(run, "pod", report_pod(run))
    group = why(run, "nodegroup", "wide")
    assert "template: live node wide-" in group
    assert "15872Mi on node" in group
    assert "3584Mi by catalogue" in group
    same_as_golden("wrong-catalogue-corrected", group)


def test_an_hpa_shows_every_number_on_the_way(run):
    """From the pods by class over the ratio and the windows to the replicas."""
    same_as_golden("wrong-catalogue-hpa", why(run, "hpa", "thumbs", "22m"))


def test_a_change_that_the_api_server_refuses_is_in_the_answer(tmp_path):
    """Also in a tick whose record leaves the refusal out, as it is that of the tick before; and until it is over."""
    fault = FaultSpec(kind="api-error", start="10s", end="3m")
    run_simulation(
        small(duration="5m", faults=(fault,)), base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail
    )
    first, later, over = (why(tmp_path, "hpa", "web", at).splitlines()[1] for at in ("15s", "2m30s", "4m"))
    assert "and is to be scaled to 4 now. That failed: the server is currently unable to handle" in first
    assert "The same holds" not in first
    assert later.endswith("The same holds of every change since 2026-03-02T00:00:15Z.")
    assert "failed" not in over
    assert over.startswith("  It has 4 replicas")


def test_a_name_that_is_not_there_gets_the_nearest(run):
    """A typo is answered with the name that was meant."""
    with pytest.raises(WhyError, match=r"; there is only default/thumbs \(--at chooses"):
        why(run, "hpa", "foo")  # the namespace in common is no likeness
    with pytest.raises(WhyError, match="did you mean default/thumbs"):
        why(run, "hpa", "thums")
    with pytest.raises(WhyError, match="no nodegroup wide2"):
        why(run, "nodegroup", "wide2")


def test_a_group_in_the_place_of_a_node_is_named_as_one(run):
    """What was decided about the group is no past of a node of that name."""
    with pytest.raises(WhyError, match="wide is no node, but a nodegroup: ask about nodegroup wide"):
        why(run, "node", "wide")


def test_the_name_of_a_workload_offers_its_pods(run):
    """Whoever names a Deployment, or forgets the namespace, reads the pods that are meant."""
    pod = report_pod(run)
    with pytest.raises(WhyError, match="did you mean default/report-"):
        why(run, "pod", "report")
    with pytest.raises(WhyError, match=f"did you mean default/{pod}"):
        explain_object(run, "pod", pod, namespace="shop", at=None)


def test_a_workload_that_nothing_scales_leads_to_its_pods(run):
    """Why a Deployment has too few pods is asked about it, and answered about them."""
    asked = CliRunner().invoke(cli, ["explain", "deploy", "report", "--out", str(run)])
    assert str(asked.exception) == (
        "nothing scales Deployment default/report; about one of its pods ask: kubetide explain pod "
        f"default/{report_pod(run)} --out {run}"
    )


def test_a_folder_without_records_is_named(tmp_path):
    """A folder without records is reported as one."""
    with pytest.raises(RecordError, match="--out"):
        why(tmp_path, "node", "x")


def test_a_time_of_a_log_in_whole_seconds_includes_what_was_decided_in_that_second(tmp_path):
    """Live ticks carry fractions that no log shows: the second and the minute that are named hold the decision."""
    late, scenario = tmp_path, replace(load_scenario(SCENARIO), start="2026-03-02T00:00:00.3Z")
    run_simulation(scenario, base=SCENARIO.parent, out=late, seed=1, warn=pytest.fail)
    for at in ("00:21:30", "2026-03-02T00:21:30Z", "21m30s"):
        text = why(late, "nodegroup", "wide", at)
        assert "Decided at this moment:\n  2026-03-02T00:21:30Z group wide was increased from 0 to 1" in text
    assert "increased" not in why(late, "nodegroup", "wide", "2026-03-02T00:21:30.2Z")
    assert "at 2026-03-02T00:21:00Z\n" in why(late, "nodegroup", "wide", "00:21")


def test_a_time_outside_of_the_run_is_said_to_be_one(run):
    """Before the run the answer says only when it begins; after it the answer is that of its end."""
    with pytest.raises(WhyError, match="the run begins at 2026-03-02T00:00:00Z; choose"):
        why(run, "nodegroup", "wide", "2026-03-01T23:00:00Z")
    with pytest.raises(WhyError, match="and the horizontal loop decides from 2026-03-02T00:00:15Z on"):
        why(run, "hpa", "thumbs", "00:00:10")
    text = why(run, "nodegroup", "wide", "01:30")
    assert text.startswith(
        "the records end at 2026-03-02T00:59:50Z; this is the state then\nnodegroup wide at"
    )


def test_what_is_done_to_its_nodes_is_decided_about_a_group(run, tmp_path):
    """A group lists its nodes' removals with its purchases, and says that earlier ones are left out."""

    def with_removals(record: Record) -> Record:
        removal = NODES.reason("NodeDeleted", f"wide-{record.tick}", group="wide")
        return replace(record, reasons=(removal,)) if record.tick <= 20 else replace(record, reasons=())

    text = why(rewritten(run, tmp_path, with_removals), "nodegroup", "wide", "00:10")
    assert "What was decided before:\n  ... and more, earlier; -o wide shows all\n" in text
    assert text.endswith("node wide-20 of group wide was deleted")
    assert text.count("was deleted") == 12


def test_what_is_done_again_and_again_says_how_often(run, tmp_path):
    """What a tick repeats is one line, with the number of times and the last; the moment that is asked about has its own."""
    at: dict[int, str] = {}

    def with_failures(record: Record) -> Record:
        at[record.tick] = format_rfc3339(record.now)
        failed = NODES.reason("IncreaseRefused", "wide", delta=1, error="no")
        return replace(record, reasons=(failed,) if record.tick in {3, 5, 7} else ())

    folder = rewritten(run, tmp_path, with_failures)
    text = "group wide could not be increased by 1: no"
    assert why(folder, "nodegroup", "wide", "00:10").endswith(
        f"What was decided before:\n  {at[3]} {text} (and again 2 times until {at[7]})"
    )
    assert why(folder, "nodegroup", "wide", at[7]).endswith(
        f"Decided at this moment:\n  {at[7]} {text}\n\nWhat was decided before:\n  {at[3]} {text} (and again at {at[5]})"
    )


def rewritten(run: Path, folder: Path, change: Callable[[Record], Record]) -> Path:
    """The run's records of the node loop, each changed."""
    writer = RecordWriter(folder, warn=pytest.fail)
    writer.start()
    for record in read_records(run, "nodes"):
        writer.write(change(record))
    writer.close()
    return folder


@pytest.mark.parametrize(
    ("text", "at", "end"),
    [
        ("11:00", "2026-03-02T11:00:00Z", "2026-03-02T11:01:00Z"),
        ("11:00:03", "2026-03-02T11:00:03Z", "2026-03-02T11:00:04Z"),
        ("10:59", "2026-03-03T10:59:00Z", "2026-03-03T11:00:00Z"),
        ("1h", "2026-03-02T12:00:03Z", "2026-03-02T12:00:04Z"),
        ("2026-03-02T12:00", "2026-03-02T12:00:00Z", "2026-03-02T12:01:00Z"),
        ("2026-03-02T12:00:07", "2026-03-02T12:00:07Z", "2026-03-02T12:00:08Z"),
        ("2026-03-02T13:00:00+01:00", "2026-03-02T12:00:00Z", "2026-03-02T12:00:01Z"),
    ],
)
def test_a_moment_is_as_long_as_it_was_said(text, at, end):
    """A minute, a second; the minute in which a run begins is not that of the next day."""
    moment = read_moment(text, parse_rfc3339("2026-03-02T11:00:03Z"))
    assert (moment.at, moment.end) == (parse_rfc3339(at), parse_rfc3339(end))


def test_all_loops_count_from_the_same_start(run):
    """A run begins with the first tick of any loop, in whole seconds."""
    assert start_of_records(run) == START


REFUSED = """\
name: refused
start: 2026-03-02T00:00:00Z
duration: 3m
nodeGroups:
  - {name: a, instanceType: m5.large, min: 1, max: 3}
  - {name: b, instanceType: m5.large, min: 0, max: 3, taints: [{key: x, value: "1", effect: NoSchedule}]}
loops: [nodes]
manifests:
  - |
    apiVersion: v1
    kind: Pod
    metadata: {name: web}
    spec: {priorityClassName: high, containers: [{name: main, image: x, resources: {requests: {cpu: 64}}}]}
    ---
    apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {name: high}
    value: 100
"""


def test_what_each_tick_says_again_is_said_once(tmp_path):
    """Two groups refuse a pod in every tick: the list has both refusals, with the time since when.

    The class of the pod's priority may stand below the pod.
    """
    (tmp_path / "refused.yaml").write_text(REFUSED)
    scenario = load_scenario(tmp_path / "refused.yaml")
    run_simulation(scenario, base=tmp_path, out=tmp_path / "out", seed=1, warn=pytest.fail)
    refusals = [
        line
        for line in why(tmp_path / "out", "pod", "web").splitlines()
        if line.startswith("  2026") and " cannot hold default/web: " in line
    ]
    assert [line.split()[2] for line in refusals] == ["a", "b"]
    assert [line.split()[0] for line in refusals] == ["2026-03-02T00:00:00Z"] * 2
