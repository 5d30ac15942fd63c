"""A run with claims: volumes are made where pods are placed, and nodes are bought for pods that wait for both."""

from __future__ import annotations

import msgspec
import pytest
from tests.simulate.worlds import MANIFEST, small

from kubetide.runtime.recording.records import read_records
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.build import manifests_of
from kubetide.simulate.scenarios.notices import notices_of

LATE = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: disk.test
volumeBindingMode: WaitForFirstConsumer
"""
DATABASE = """
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 3
  serviceName: db
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      containers:
      - name: main
        image: db
        resources: {requests: {cpu: 1500m, memory: 128Mi}}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec:
      storageClassName: fast
      accessModes: [ReadWriteOnce]
      resources: {requests: {storage: 5Gi}}
"""


def with_database(*texts):
    """Machines of two cores: each pod of the database needs one of its own."""
    return msgspec.structs.replace(small(nodes=1, duration="15m"), manifests=(MANIFEST, *texts))


@pytest.mark.slow
def test_a_database_gets_its_volumes_and_its_nodes(tmp_path):
    """All three pods run on nodes that are bought for them; the records decide again to the same bytes."""
    reported = []
    result = run_simulation(
        with_database(LATE, DATABASE), base=tmp_path, out=tmp_path, seed=1, warn=reported.append
    )
    assert reported == []
    assert result.timeline.pending[-1] == 0
    assert max(result.timeline.nodes["general"]) == 3
    bound = {
        claim["metadata"]["name"]: bool(claim["spec"].get("volumeName"))
        for record in read_records(tmp_path, "nodes")
        for claim in (msgspec.json.decode(record.state).get("volumes") or {}).get("claims", ())
    }
    assert bound == {"data-db-0": True, "data-db-1": True, "data-db-2": True}
    assert replay(tmp_path).differences == ()


def test_claims_that_would_wait_for_good_are_said(tmp_path):
    """Without the class, and without anything that would make their volumes."""
    assert notices_of(manifests_of(with_database(DATABASE), tmp_path)) == (
        "StatefulSet default/db: its claims wait, as there is no StorageClass fast and no volume",
    )
