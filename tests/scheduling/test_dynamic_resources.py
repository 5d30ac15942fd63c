"""DynamicResources against recorded verdicts and allocations of Kubernetes v1.36.2's own plugin."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from tests.conformance.scheduling import devices_of

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import ClusterFacts, Snapshot, classify

RECORDED = Path(__file__).parent / "data" / "devices.json.gz"
PLUGIN = "DynamicResources"
PREFIXES = (f'running PreFilter plugin "{PLUGIN}": ', f'running "{PLUGIN}" filter plugin: ')


def recorded():
    return json.loads(gzip.decompress(RECORDED.read_bytes()))["cases"]


def snapshot_of(case):
    snapshot = Snapshot()
    snapshot.set_facts(ClusterFacts(devices=devices_of(case["objects"])))
    for node in case["nodes"]:
        snapshot.set_node(msgspec.convert(node, Node))
    return snapshot


def plain(reason):
    for prefix in PREFIXES:
        reason = reason.removeprefix(prefix)
    return reason


def verdicts(snapshot, pod):
    """The plugin's verdict on each node: None, or code and reasons."""
    said = snapshot.refusals_by_plugin(classify(pod)).get(PLUGIN, {})
    found = {}
    for name in snapshot.node_names:
        refusal = said.get("*") or said.get(name)
        found[name] = refusal and [refusal.code, [plain(reason) for reason in refusal.reasons]]
    return found


def expected_verdicts(case):
    everywhere = case["expect"].get("prefilter")
    by_node = case["expect"].get("filter") or {}
    reported = {
        node["metadata"]["name"]: everywhere or by_node.get(node["metadata"]["name"])
        for node in case["nodes"]
    }
    return {name: one and [one["code"], one["reasons"]] for name, one in reported.items()}


def devices_held(snapshot, claim):
    """The devices that count as a claim's own, without those of admin access."""
    held = snapshot.devices.held(("default", claim))
    return sorted(taking.device for taking in held.takings) if held else []


def without_admin(case, claim, results):
    spec = next(one for one in case["objects"]["resourceClaims"] if one["metadata"]["name"] == claim)["spec"]
    admin = [
        one["name"] for one in spec["devices"]["requests"] if (one.get("exactly") or {}).get("adminAccess")
    ]
    return sorted(tuple(device) for request, *device in results if request not in admin)


@pytest.mark.slow
def test_recorded_clusters():
    """Each node's verdict is upstream's, word by word, and so are the devices that a claim would get there."""
    cases = recorded()
    given = 0
    for case in cases:
        snapshot = snapshot_of(case)
        pod = msgspec.convert(case["pod"], Pod)
        assert verdicts(snapshot, pod) == expected_verdicts(case)
        for name, claims in case["expect"]["allocated"].items():
            snapshot.fork()
            snapshot.add_pod(pod, name)
            for claim, results in claims.items():
                assert devices_held(snapshot, claim) == without_admin(case, claim, results)
                given += len(results)
            snapshot.revert()
            assert not any(devices_held(snapshot, claim) for claim in claims)
    assert len(cases) > 600
    assert given > 150


def test_both_ways_of_asking_agree():
    """The vector of all nodes is the answers for single nodes, also in the counts of refusals."""
    for case in recorded()[:150]:
        snapshot = snapshot_of(case)
        pod_class = classify(msgspec.convert(case["pod"], Pod))
        fits = dict(zip(snapshot.node_names, snapshot.feasible(pod_class).tolist(), strict=True))
        counts = {}
        for name, one in fits.items():
            refusal = snapshot.first_refusal(pod_class, name)
            assert one == snapshot.fits(pod_class, name) == (refusal is None)
            for reason in refusal.reasons if refusal else ():
                counts[reason] = counts.get(reason, 0) + 1
        assert snapshot.refusals(pod_class) == counts
