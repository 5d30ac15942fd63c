"""`kubetide explain` on a recorded run: the texts a person reads, held as they are.

To renew the golden texts after a change of wording: KUBETIDE_RENEW_GOLDEN=1 pytest tests/simulate/test_why.py
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kubetide.runtime.records import RecordError
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenario import load_scenario
from kubetide.simulate.why import WhyError, explain_object
from kubetide.units.time import Instant, after, minutes, parse_rfc3339

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


def why(run: Path, kind: str, name: str, at: Instant | None = None) -> str:
    return explain_object(run, kind, name, namespace="default", at=at)


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
    text = why(run, "pod", report_pod(run), after(START, minutes(10)))
    assert "catalogue of the embedded cloud, instance type wide.xlarge: 4 CPU, 4Gi memory" in text
    assert "8Gi requested, 3584Mi free of 3584Mi allocatable" in text
    assert "verified by deciding again" in text
    same_as_golden("wrong-catalogue-refused", text)


def test_after_a_live_node_the_pod_is_accepted(run):
    """Once a node of the group was seen, the pod has its place, and the group tells both numbers."""
    assert "It is on node wide-" in why(run, "pod", report_pod(run))
    group = why(run, "nodegroup", "wide")
    assert "template: live node wide-" in group
    assert "15872Mi on node" in group
    assert "3584Mi by catalogue" in group
    same_as_golden("wrong-catalogue-corrected", group)


def test_an_hpa_shows_every_number_on_the_way(run):
    """From the pods by class over the ratio and the windows to the replicas."""
    same_as_golden("wrong-catalogue-hpa", why(run, "hpa", "thumbs", after(START, minutes(22))))


def test_a_name_that_is_not_there_gets_the_nearest(run):
    """A typo is answered with the name that was meant."""
    with pytest.raises(WhyError, match="did you mean default/thumbs"):
        why(run, "hpa", "thums")
    with pytest.raises(WhyError, match="no nodegroup wide2"):
        why(run, "nodegroup", "wide2")


def test_a_folder_without_records_is_named(tmp_path):
    """A wrong folder is said to be one."""
    with pytest.raises(RecordError, match="--out"):
        why(tmp_path, "node", "x")
