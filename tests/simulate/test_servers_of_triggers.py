"""ScaledObjects whose triggers ask a server, in a run of virtual time."""

from __future__ import annotations

import gc

import aiohttp
import msgspec
from tests.simulate.worlds import MANIFEST, small

from kubetide.simulate.run import run_simulation

QUEUE = """
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: queue}
spec:
  replicas: 1
  selector: {matchLabels: {app: queue}}
  template:
    metadata: {labels: {app: queue}}
    spec:
      containers: [{name: main, image: queue, resources: {requests: {cpu: 100m, memory: 128Mi}}}]
---
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: queue}
spec:
  scaleTargetRef: {name: queue}
  triggers:
  - {type: prometheus, metadata: {serverAddress: "http://prometheus:9090", query: sum(x), threshold: "5"}}
  - {type: external, metadata: {scalerAddress: "scaler:6000"}}
"""


def run(tmp_path, *loops):
    scenario = msgspec.structs.replace(small(), manifests=(MANIFEST + QUEUE,), loops=loops)
    said = []
    return run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=said.append), said


def test_that_no_server_is_asked_is_said_once(tmp_path):
    """Virtual time connects to nobody: that is said before the run and in its summary, and is no mistake of the objects."""
    result, said = run(tmp_path, "scaledobjects", "horizontal", "nodes")
    [notice] = [text for text in result.summary.notices if "ScaledObject" in text]
    assert notice.startswith(
        "ScaledObject default/queue: its triggers of type external and prometheus are not followed"
    )
    assert "kubetide up" in notice
    assert notice in said
    assert result.stuck == ()


def test_connections_of_the_loops_are_closed_at_the_end(tmp_path):
    """A session that is left open is complained of on stderr, by whoever finds it."""
    run(tmp_path, "scaledobjects", "horizontal", "nodes")
    gc.collect()
    assert [
        one for one in gc.get_objects() if isinstance(one, aiohttp.ClientSession) and not one.closed
    ] == []
