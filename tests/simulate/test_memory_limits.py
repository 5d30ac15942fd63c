"""Containers above their memory limit are killed in runs; variants of one scenario are played side by side."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from kubetide.cli.main import cli
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario
from kubetide.simulate.variants import variant_of

SCENARIO = """
name: deploy
duration: 40m
nodeGroups: [{name: general, instanceType: m5.large, min: 2, max: 4}]
loops: [nodes, vertical]
flags: {memory-aggregation-interval: 10m, scale-down-unneeded-time: 5m}
variants:
  none: {loops: [nodes]}
  vpa: {}
manifests:
  - |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: web}
    spec:
      replicas: 2
      selector: {matchLabels: {app: web}}
      template:
        metadata: {labels: {app: web}}
        spec:
          containers:
            - {name: main, image: "web:1", resources: {requests: {cpu: 500m, memory: 400Mi}, limits: {memory: 500Mi}}}
    ---
    apiVersion: autoscaling.k8s.io/v1
    kind: VerticalPodAutoscaler
    metadata: {name: web}
    spec:
      targetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
services:
  - deployment: web
    cpuSecondsPerRequest: 0.01
    baseMemory: 300Mi
    rollouts: [{at: 5m, image: "web:2", baseMemory: 600Mi}]
    load: {daily: {low: 20, peak: 20}}
"""

TWICE = json.dumps("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n" * 2)
LARGE = json.dumps(
    "apiVersion: v1\nkind: Pod\nmetadata: {name: large}\n"
    "spec: {containers: [{name: c, image: c, resources: {requests: {cpu: 90}}}]}\n"
)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "deploy.yaml"
    found.write_text(SCENARIO)
    return found


def test_a_deploy_beyond_the_limit_is_killed_until_vpa_raises_it(path, tmp_path):
    """Without VPA to the end of the run; with it pods come back with more, and the kills end."""
    scenario = load_scenario(path)
    found = {}
    for name in scenario.variants:
        one = variant_of(scenario, name)
        result = run_simulation(one, base=tmp_path, out=tmp_path / name, seed=1, warn=pytest.fail)
        assert result.violations == ()
        found[name] = result.summary
    none, vpa = (found[name].services[0] for name in ("none", "vpa"))
    assert none.oom_kills > 2 * vpa.oom_kills > 0
    assert found["none"].vpa_evictions == 0 < found["vpa"].vpa_evictions
    assert vpa.slo_minutes_lost < none.slo_minutes_lost


def test_all_variants_are_played_by_one_command(path, tmp_path):
    """A line each, and a folder each; a scenario without any says so."""
    path.write_text(SCENARIO.replace("40m", "6m"))
    out = tmp_path / "out"
    result = CliRunner().invoke(cli, ["simulate", str(path), "--variants", "--out", str(out)])
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.output.splitlines() if line]
    assert [line[0] for line in lines if line[0] in {"none", "vpa"}] == ["none", "vpa"]
    for name in ("none", "vpa"):
        assert json.loads((out / name / "summary.json").read_bytes())["name"] == "deploy"
        assert (out / name / "report.html").exists()
    path.write_text(
        SCENARIO.replace("variants:", "show: {}\nvariants: {}\n").replace(
            "  none: {loops: [nodes]}\n  vpa: {}\n", ""
        )
    )
    refused = CliRunner().invoke(cli, ["simulate", str(path), "--variants", "--out", str(out)])
    assert "variants: there are none" in str(refused.exception)


def test_a_strict_run_of_variants_tells_what_could_not_scale(path, tmp_path):
    """The exit status is 3, and each sentence names the variant."""
    path.write_text(SCENARIO.replace("40m", "12m").replace("vpa: {}", f"vpa: {{manifests: [{LARGE}]}}"))
    played = ["simulate", str(path), "--variants", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(cli, played).exit_code == 0
    result = CliRunner().invoke(cli, [*played, "--strict"])
    assert result.exit_code == 3
    assert "strict: vpa: Pod default/large: 1 pod without a node" in result.stderr
    assert "strict: none: " not in result.stderr


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("none: {loops: [nodes]}", "none: {loops: [noodles]}", "variants[none].loops"),
        ("vpa: {}", "vpa: {flags: {no-such: 1}}", "variants[vpa].flags[no-such]"),
        ("vpa: {}", "Vpa!: {}", "variants[Vpa!]"),
        ("vpa: {}", f"vpa: {{manifests: [{TWICE}]}}", "variants[vpa].manifests: Namespace a stands twice"),
        ("at: 5m", "at: 50m", "rollouts[0].at: 50m is not before the end of the run"),
        ("baseMemory: 600Mi", "baseMemory: much", "rollouts[0].baseMemory: 'much' is not a quantity"),
        ("baseMemory: 300Mi", "baseMemory: 300Mi\n    startup: {cpuSeconds: 0}", "startup.cpuSeconds"),
        ("baseMemory: 300Mi", "baseMemory: 300Mi\n    leakPerHour: -1Mi", "leakPerHour"),
    ],
)
def test_bad_fields_are_reported(path, old, new, said):
    """Variants, rollouts, leaks and starts that cannot be played are named with their field."""
    path.write_text(SCENARIO.replace(old, new))
    with pytest.raises(ScenarioError) as found:
        load_scenario(path)
    assert said in str(found.value)
