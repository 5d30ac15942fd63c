"""A small scenario that runs in a moment."""

from __future__ import annotations

from kubetide.simulate.scenarios.scenario import (
    DailySpec,
    FaultSpec,
    LoadSpec,
    NodeGroupSpec,
    Scenario,
    ServiceSpec,
)

MANIFEST = """apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - name: main
        image: web
        resources: {requests: {cpu: 200m, memory: 128Mi}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 2
  maxReplicas: 8
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
"""


def small(*, duration: str = "20m", faults: tuple[FaultSpec, ...] = (), nodes: int = 3) -> Scenario:
    """One service on one group of machines, at a load that needs a few pods more."""
    load = LoadSpec(daily=DailySpec(low=40, peak=40))
    return Scenario(
        name="small",
        duration=duration,
        node_groups=(NodeGroupSpec(name="general", instance_type="m5.large", min=1, max=4, initial=nodes),),
        services=(ServiceSpec(deployment="web", cpu_seconds_per_request=0.01, load=load),),
        manifests=(MANIFEST,),
        faults=faults,
    )
