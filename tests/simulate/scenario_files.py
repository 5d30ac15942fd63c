"""A good scenario as a file, with values put in, and what is said of it."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import yaml

from kubetide.simulate.scenarios.scenario import ScenarioError, load_scenario

DEPLOYMENT = """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: main
        image: web
        resources:
          requests: {cpu: 100m}
"""

GOOD = {
    "name": "small",
    "duration": "10m",
    "instanceTypes": {"big": {"cpu": 4, "memory": "16Gi"}},
    "nodeGroups": [
        {"name": "one", "instanceType": "big", "min": 1, "max": 3, "taints": [{"key": "a"}]},
        {"name": "two", "instanceType": "m5.large", "max": 3},
    ],
    "services": [
        {
            "deployment": "web",
            "cpuSecondsPerRequest": 0.01,
            "load": {"daily": {"low": 1, "peak": 2, "burst": {"at": "12:00", "height": 2}}},
        }
    ],
    "externalMetrics": [
        {"metric": "queue_messages_ready", "labels": {"queue": "a"}, "load": {"daily": {"low": 1, "peak": 2}}}
    ],
    "flags": {"scan-interval": "10s"},
    "faults": [{"kind": "stock-out", "group": "one", "start": "1m", "end": "2m"}],
    "manifests": [DEPLOYMENT],
}

REMOVED = object()


def written(folder: Path, changes: dict[str, object]) -> Path:
    """Write the good scenario with values put at paths such as ``nodeGroups.0.min``."""
    value = copy.deepcopy(GOOD)
    for path, new in changes.items():
        *way, last = (int(part) if part.isdigit() else part for part in path.split("/"))
        at = value
        for part in way:
            at = at.setdefault(part, {}) if isinstance(at, dict) else at[part]
        if new is REMOVED:
            del at[last]
        else:
            at[last] = new
    file = folder / "scenario.yaml"
    file.write_text(yaml.safe_dump(value, sort_keys=False), encoding="utf-8")
    return file


def refused(path: Path, **kwargs: Path) -> list[str]:
    with pytest.raises(ScenarioError) as caught:
        load_scenario(path, **kwargs)
    return str(caught.value).splitlines()
