"""A scenario without services: two pods of a Job, each of which needs a node."""

from __future__ import annotations

JOBS = """\
name: jobs
start: 2026-03-02T00:00:00Z
duration: 5m
nodeGroups:
  - {name: workers, instanceType: m5.large, min: 0, max: 2, bootTime: 20s}
loops: [nodes]
manifests:
  - |
    apiVersion: batch/v1
    kind: Job
    metadata: {name: batch}
    spec:
      parallelism: 2
      completions: 2
      template:
        spec:
          restartPolicy: Never
          containers: [{name: main, image: x, resources: {requests: {cpu: 1500m}}}]
"""
