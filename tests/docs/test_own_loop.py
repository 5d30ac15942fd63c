"""The loop of docs/extending.md runs from a package of its own, without a change elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from tests.docs.tables import DOCS

from kubetide.runtime.recording.records import read_records

PAGE = (DOCS / "extending.md").read_text(encoding="utf-8")
SCENARIO = """
name: floors
duration: 10m
nodeGroups:
  - name: general
    instanceType: m5.large
    min: 2
    max: 4
loops: [horizontal, nodes, floors]
flags:
  floors-period: 20s
manifests: [web.yaml]
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  annotations: {example.com/floor: "3"}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
        - name: web
          image: web
          resources: {requests: {cpu: 100m}}
"""


@pytest.fixture(scope="module")
def kubetide(tmp_path_factory):
    """Runs a command of kubetide where the package is installed, in a folder with the scenario."""
    home = tmp_path_factory.mktemp("floors")
    [code] = re.findall(r"```python\n# package of its own: floors.py\n(.*?)```", PAGE, flags=re.DOTALL)
    site = home / "site"
    info = site / "floors-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "floors.py").write_text(code, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: floors\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[kubetide.loops]\nfloors = floors:ENTRY\n", encoding="utf-8")
    (home / "scenario.yaml").write_text(SCENARIO, encoding="utf-8")
    (home / "web.yaml").write_text(DEPLOYMENT, encoding="utf-8")
    paths = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*arguments):
        command = [sys.executable, "-m", "kubetide", *arguments]
        done = subprocess.run(command, cwd=home, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run.home = home
    run("simulate", "scenario.yaml", "--seed", "1")
    return run


@pytest.mark.slow
def test_it_ticks_in_a_simulation(kubetide):
    """It writes a record in each of its own periods, and raises the Deployment in the first tick."""
    records = list(read_records(kubetide.home / "kubetide-out", "floors"))
    assert len(records) == 30
    assert [reason.code for one in records for reason in one.reasons] == ["Raised"]


@pytest.mark.slow
def test_it_is_replayed(kubetide):
    """Its decisions are made again from its records, beside those of the other loops."""
    assert "floors" in kubetide("replay", "kubetide-out")


@pytest.mark.slow
def test_it_is_explained(kubetide):
    """Its entry names the objects that can be explained."""
    said = kubetide("explain", "floor", "web")
    assert "3 replicas, floor 3" in said
    assert "default/web: raised from 1 to its floor 3" in said


@pytest.mark.slow
def test_it_runs_live(kubetide):
    """`kubetide up` takes it as `simulate` does."""
    out = kubetide("up", "scenario.yaml", "--speed", "300", "--out", "live")
    assert out


@pytest.mark.slow
def test_its_settings_are_checked(kubetide):
    """`kubetide run` knows its flags where it is named, and only there."""
    said = kubetide("config", "check", "--controllers=floors", "--floors-period=1m")
    assert "floors-period" in said
