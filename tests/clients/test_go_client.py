"""client-go sees the same at both servers: discovery, informers, patches, apply, scale, eviction, leases, custom kinds."""

from __future__ import annotations

import subprocess

import pytest
from tools.plane.build import find

pytestmark = pytest.mark.slow

EXPECTED = """\
discovery: v1.36, apps/v1 deployments/scale, autoscaling/v1 horizontalpodautoscalers, autoscaling/v2 \
horizontalpodautoscalers, coordination.k8s.io/v1 leases, prefers autoscaling/v2, v1 bindings, v1 pods/binding, \
v1 pods/eviction
mapper: deploy=deployments.apps(namespace) hpa=horizontalpodautoscalers.autoscaling(namespace) \
pdb=poddisruptionbudgets.policy(namespace) po=pods(namespace) cm=configmaps(namespace) ns=namespaces(root)
access: allowed=true
objects: exists=true conflict=true tries=2 invalid=true(FieldValueInvalid metadata.name) precondition=true \
missing=true
list: part-0 part-1 part-2 part-3 part-4; odd but part-1: 1
informer: add old initial=true, add new initial=false, update new 1 to 2, delete new, resync old; cached k=1
patches: env A=1 B=2, image nginx:1.27; replicas 3; failed test invalid=true; status 2 of 3
apply: conflict=true(FieldManagerConflict .spec.replicas) replicas 6, appliers second, second owns replicas=6, \
condition Available
scale: 6(app=web) to 8, 9, 10; stale conflict=true
evict: on node nowhere; refused=true(DisruptionBudget ) gone=true
events: Tested client-go was here x2 from clients
custom: unknown field kept=false; invalid=true(FieldValueInvalid spec.count, FieldValueInvalid .spec.count); \
scale 1 of 4 (app=w); [add update update delete]
metadata: web
leader: first leads, first stops, second leads, held by second after 1 changes, second stops
"""


def test_steps(kubeconfig_path):
    """Each step of the program says what Kubernetes makes it say."""
    program = find("clients")
    if program is None:
        pytest.skip("not built: clients (python -m tools.plane build clients)")
    run = subprocess.run([program, kubeconfig_path], capture_output=True, text=True, check=False, timeout=300)
    assert (run.stdout, run.returncode) == (EXPECTED, 0), run.stderr
