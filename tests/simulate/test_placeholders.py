"""Overprovisioning by placeholder pods, as Cluster Autoscaler's FAQ has it: what scales up takes their place at once."""

from __future__ import annotations

import pytest

from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import after, before, minutes, parse_duration, to_seconds

SCENARIO = """\
name: overprovisioned
start: 2026-03-02T00:00:00Z
duration: 20m
loops: [nodes]
nodeGroups:
  - {{name: general, instanceType: m5.xlarge, min: 2, max: 4, bootTime: 60s}}
manifests:
  - |
    apiVersion: scheduling.k8s.io/v1
    kind: PriorityClass
    metadata: {{name: overprovisioning}}
    value: {priority}
    ---
    apiVersion: apps/v1
    kind: Deployment
    metadata: {{name: reserve}}
    spec:
      replicas: 2
      selector: {{matchLabels: {{app: reserve}}}}
      template:
        metadata: {{labels: {{app: reserve}}}}
        spec:
          priorityClassName: overprovisioning
          containers:
          - {{name: pause, image: pause, resources: {{requests: {{cpu: 3500m}}}}}}
    ---
    apiVersion: batch/v1
    kind: CronJob
    metadata: {{name: batch}}
    spec:
      schedule: "5 0 * * *"
      jobTemplate:
        spec:
          parallelism: 2
          completions: 2
          template:
            metadata: {{labels: {{app: batch}}}}
            spec:
              restartPolicy: Never
              containers:
              - {{name: main, image: main, resources: {{requests: {{cpu: "2"}}}}}}
"""


@pytest.mark.parametrize(("priority", "bought"), [(-10, 2), (-20, 0)])
def test_pods_take_the_place_of_placeholders(tmp_path, priority, bought):
    """They run as soon as the placeholders have stopped, and nodes are bought for these, unless they are expendable."""
    (tmp_path / "scenario.yaml").write_text(SCENARIO.format(priority=priority))
    scenario = load_scenario(tmp_path / "scenario.yaml")
    created, waits = {}, []

    async def main(clock):
        end = after(start_of(scenario), minutes(20))
        world = World(scenario, clock, base=tmp_path, end=end, seed=1, recorder=NullRecorder())

        def follow(key, old, new):
            if new is None or (new.metadata.labels or {}).get("app") != "batch":
                return
            created.setdefault(key, clock.now())
            if new.spec.node_name and (old is None or not old.spec.node_name):
                waits.append(to_seconds(clock.now() - created[key]))

        world.pods.on_change(follow)
        await world.run()
        return world

    world = run_virtual(main, start=before(start_of(scenario), parse_duration(scenario.warm_up)))
    assert len(waits) == 2
    assert max(waits) < 35  # the time that a pod has to stop
    added = [one for one in world.timeline.node_lives if one.created > start_of(scenario)]
    assert len(added) == bought
    assert world.timeline.preemptions == 2
    assert world.violations() == []
