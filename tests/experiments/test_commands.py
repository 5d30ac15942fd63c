"""`kubetide what-if` and `kubetide test` as a person calls them."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import msgspec
import pytest
import yaml
from click.testing import CliRunner
from tests.simulate.worlds import small

from kubetide.cli.main import cli
from kubetide.experiments.changes import without_nulls


@pytest.fixture
def shop(tmp_path):
    """The small scenario as a file."""
    path = tmp_path / "shop.yaml"
    path.write_text(yaml.safe_dump(without_nulls(json.loads(msgspec.json.encode(small(duration="10m"))))))
    return path


def invoke(*arguments):
    return CliRunner().invoke(cli, [str(one) for one in arguments])


@pytest.mark.slow
def test_what_if_sets_both_runs_side_by_side(shop, tmp_path):
    """The figures of both runs, the decision at which they part, and a page with both."""
    out = tmp_path / "out"
    result = invoke("what-if", shop, "--set", "hpa/web.target=30", "--out", out)
    assert result.exit_code == 0, result.output
    summaries = [json.loads((out / run / "summary.json").read_text()) for run in ("as-it-is", "changed")]
    minutes = [f"{one['services'][0]['pod_minutes']:,.0f}" for one in summaries]
    line = next(line for line in result.output.splitlines() if line.startswith("web: pod-minutes"))
    assert line.split()[2:4] == minutes
    assert "the first decision that differs, at 00:00:" in result.output
    assert "with changes: 00:00:" in result.output
    assert "default/web: scaled from " in result.output
    data = (out / "what-if.html").read_text().partition('id="kubetide-data">')[2].partition("</script>")[0]
    assert json.loads(data)["changes"] == ["hpa/web.target=30"]
    assert {len(pair["before"]) for pair in json.loads(data)["history"]["pairs"]} == {40}
    assert invoke("replay", out / "changed").exit_code == 0


@pytest.mark.slow
def test_what_if_a_limit_keeps_every_group(shop, tmp_path):
    """The run that decided nothing says what kept it, though that is about no group in particular."""
    large = shop.read_text().replace("cpu: 200m", "cpu: 1100m").replace("initial: 3", "initial: 1")
    shop.write_text(large)
    result = invoke("what-if", shop, "--set", "max-nodes-total=1", "--out", tmp_path / "out")
    assert "with changes: decided nothing: " in result.output, result.output
    assert "the cluster has 1 node, the limit is 1" in result.output
    waits = "with changes: ReplicaSet default/web-"
    (notice,) = [line for line in result.output.splitlines() if line.startswith(waits)]
    assert f"--out {tmp_path / 'out' / 'changed'}" in notice
    assert "\nas it is: " not in result.output


VPA = """apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {name: web}
spec: {targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}
"""


@pytest.mark.slow
def test_what_if_an_object_comes_without_its_loop(shop, tmp_path):
    """That both runs took the same decisions says nothing of the VPA then, and the answer says so."""
    patch = tmp_path / "vpa.yaml"
    patch.write_text(VPA)
    result = invoke("what-if", shop, "--patch", patch, "--out", tmp_path / "out")
    assert "\nwith changes: VerticalPodAutoscaler: 1 without effect: no loop of this run" in result.output
    assert "both runs took the same decisions" in result.output


@pytest.mark.slow
def test_what_if_nothing_differs(shop, tmp_path):
    """A change that matters to no decision says so."""
    result = invoke("what-if", shop, "--set", "group/general.max=5", "--out", tmp_path / "out")
    assert "both runs took the same decisions" in result.output


def test_what_if_without_a_change(shop):
    """A what-if without a change is an error of use."""
    result = invoke("what-if", shop)
    assert result.exit_code == 2
    assert "--set or --patch" in result.output


def test_what_if_compares_runs_over_the_same_time(shop, tmp_path):
    """Start and duration hold for both runs; alone they change nothing, and the answer says so."""
    alone = invoke("what-if", shop, "--set", "duration=1m")
    assert alone.exit_code == 2
    assert "both runs have duration=1m, as they are compared over the same time" in alone.output
    out = tmp_path / "out"
    times = ("--set", "duration=1m", "--set", "start=2026-03-03T00:00:00Z")
    result = invoke("what-if", shop, *times, "--set", "hpa/web.target=30", "--out", out)
    assert result.exit_code == 0, result.output
    assert (
        "what if hpa/web.target=30\n\nboth runs have duration=1m, start=2026-03-03T00:00:00Z\n"
        in result.output
    )
    read = [json.loads((out / run / "summary.json").read_text()) for run in ("as-it-is", "changed")]
    assert read[0]["hours"] == read[1]["hours"] == 0.0167
    assert read[0]["start"] == read[1]["start"]


@pytest.mark.slow
def test_policies_hold_and_fail(shop, tmp_path):
    """Each expectation is reported; what fails says when and why; the XML holds the same; the exit status is 1."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        yaml.safe_dump(
            {
                "scenario": "shop.yaml",
                "set": {"hpa/web.max": 2},
                "seeds": [3],
                "expect": [
                    "podMinutes(web) <= baseline",
                    "always(replicas(web) >= 3 between 00:05 and 00:08)",
                    "sloMinutes <= 0",
                ],
            }
        )
    )
    junit = tmp_path / "new" / "results.xml"
    result = invoke("test", policy, "--junit", junit, "--out", tmp_path / "out")
    assert result.exit_code == 1, result.output
    assert "ok    podMinutes(web) <= baseline" in result.output
    assert "FAIL  always(replicas(web) >= 3 between 00:05 and 00:08)" in result.output
    assert "replicas(web) was 2 from 2026-03-02 00:05:00 for 3m0s" in result.output
    suite = ET.parse(junit).getroot().find("testsuite")
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1" if "1 failed" in result.output else "2")
    assert [case.get("name") for case in suite if case.find("failure") is not None]


@pytest.mark.parametrize(
    ("policy", "reported"),
    [
        ("expect: [cost <= 1]\n", "missing required field `scenario`"),
        ("scenario: shop.yaml\nexpect: []\n", "line 2: expect: empty"),
        ("scenario: shop.yaml\nexpect:\n- cost <= 1\n- costs <= 1\n", "line 4: `costs <= 1` at character 1"),
        ("scenario: shop.yaml\nexpect: [sloMinutes(cart) <= 1]\n", "has no service `cart`; there are web"),
        ("scenario: shop.yaml\nexpect: [cost <= 1]\nset: {expandr: x}\n", "did you mean `expander`?"),
        ("scenario: shop.yaml\nexpect: [cost <= 1]\nsed: [1]\n", "unknown field `sed`"),
        (
            "scenario: shop.yaml\nset: {duration: 1m}\nexpect: [cost <= baseline]\n",
            "line 2: set: duration: the baseline would play another time",
        ),
        ("scenario: nowhere\nexpect: [cost <= 1]\n", "no example of that name"),
        ("- a\n", "a policy is one YAML mapping"),
    ],
)
def test_policies_that_cannot_be_read(shop, tmp_path, policy, reported):
    """The file, the line and what is wrong; nothing is run, and the exit status is 2."""
    path = tmp_path / "policy.yaml"
    path.write_text(policy)
    result = invoke("test", path, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert reported in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_shipped_policies_hold(tmp_path):
    """`kubetide test examples/policies/` passes, as the docs say."""
    result = invoke("test", "examples/policies", "--out", tmp_path)
    assert result.exit_code == 0, result.output
