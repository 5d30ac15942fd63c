"""Verdicts recorded from upstream's own code, for pods that use only what the filters here judge."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.scheduling import (
    FIRST_START,
    Limits,
    PodGroup,
    Snapshot,
    classify,
    cluster_threshold,
    equivalence_groups,
    estimate,
    place,
    similar_groups_threshold,
)
from kubetide.scheduling.packing import score_order

DATA = Path(__file__).parents[1] / "conformance" / "data" / "scheduling"
PLAIN_VOLUMES = {"name", "emptyDir", "projected", "configMap", "secret", "hostPath"}


def load(name):
    return json.loads(gzip.decompress((DATA / name).read_bytes()))


def in_scope(pod):
    """Whether the pod asks for nothing that only other plugins judge."""
    spec = pod["spec"]
    affinity = spec.get("affinity") or {}
    return not (
        affinity.get("podAffinity")
        or affinity.get("podAntiAffinity")
        or spec.get("topologySpreadConstraints")
        or spec.get("resourceClaims")
        or any(set(volume) - PLAIN_VOLUMES for volume in spec.get("volumes") or ())
    )


def node_of(given):
    return msgspec.convert(given, Node)


def pod_of(given):
    return msgspec.convert(given, Pod)


def snapshot_of(case):
    snapshot = Snapshot()
    for node in case.get("nodes") or ():
        snapshot.set_node(node_of(node))
    for pod in map(pod_of, case.get("pods") or ()):
        snapshot.add_pod(pod, pod.spec.node_name or pod.status.nominated_node_name)
    return snapshot


def full_name(pod):
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


@pytest.mark.parametrize(("file", "count"), [("predicates-systematic", 553), ("predicates-random", 299)])
def test_filters(file, count):
    """Feasible nodes, first failing plugin, reasons, code and phase are upstream's, and so is the node picked."""
    data = load(f"{file}.json.gz")
    judged = 0
    for recorded in data["cases"]:
        case = {**data.get("clusters", {}).get(recorded.get("cluster"), {}), **recorded}
        if not all(map(in_scope, (case["pod"], *case["pods"]))):
            continue
        snapshot = snapshot_of(case)
        pod_class = classify(pod_of(case["pod"]))
        fits = snapshot.feasible(pod_class)
        names = snapshot.node_names
        assert [name for row, name in enumerate(names) if fits[row]] == (case["expect"]["feasible"] or []), (
            case["id"]
        )
        refused = {}
        for name in names:
            refusal = snapshot.first_refusal(pod_class, name)
            if refusal is not None:
                refused[name] = {
                    "plugin": refusal.plugin,
                    "reasons": list(refusal.reasons),
                    "phase": refusal.phase,
                }
                if refusal.code:
                    refused[name]["code"] = refusal.code
        assert refused == case["expect"].get("reasons", {}), case["id"]
        row = snapshot.first_fit(pod_class, FIRST_START, snapshot.unschedulable)
        assert (names[row] if row >= 0 else None) == case["expect"].get("anyNode"), case["id"]
        judged += 1
    assert judged == count


class Simulator:
    """Carries out the steps of a recorded placement sequence."""

    def __init__(self, case):
        self.snapshot = snapshot_of(case)
        self.start = FIRST_START
        self.old_hints, self.hints = {}, {}
        self.depth = 0

    def schedule(self, step):
        acceptable = step.get("acceptableNodes")
        result = place(
            self.snapshot,
            list(map(pod_of, step["pods"])),
            hints={**self.old_hints, **self.hints},
            exclude=[
                name for name in self.snapshot.node_names if acceptable is not None and name not in acceptable
            ],
            start=self.start,
            stop_at_failure=step.get("breakOnFailure", False),
        )
        self.start = result.start
        self.hints.update(result.hints)
        return {
            "statuses": [[full_name(pod), name] for pod, name in result.placed],
            "unscheduled": sorted(map(full_name, result.unplaced)),
            "unprocessed": sorted(map(full_name, result.unprocessed)),
            "overflowingControllers": result.overflowing,
        }

    def carry_out(self, step):
        snapshot = self.snapshot
        match step["op"]:
            case "scheduleOn":
                pod = pod_of(step["pods"][0])
                if step["nodeName"] in snapshot and snapshot.fits(classify(pod), step["nodeName"]):
                    snapshot.add_pod(pod, step["nodeName"])
            case "forceAdd":
                snapshot.add_pod(pod_of(step["pods"][0]), step["nodeName"])
            case "unschedule":
                snapshot.remove_pod((step["namespace"], step["name"]))
            case "addNode":
                snapshot.set_node(node_of(step["node"]))
            case "removeNode":
                for pod in snapshot.pods_on(step["nodeName"]):
                    snapshot.remove_pod((pod.metadata.namespace, pod.metadata.name))
                snapshot.remove_node(step["nodeName"])
            case "fork":
                snapshot.fork()
                self.depth += 1
            case "revert" | "commit" as end:
                if self.depth:
                    getattr(snapshot, end)()
                    self.depth -= 1
            case "dropOldHints":
                self.old_hints, self.hints = self.hints, {}
            case other:
                raise AssertionError(other)


def test_placements():
    """Sequences of placing, forking and changing nodes end as upstream's, pod by pod."""
    judged = 0
    for case in load("placement.json.gz")["cases"]:
        if not all(
            map(in_scope, (*case["pods"], *(pod for step in case["steps"] for pod in step.get("pods", ()))))
        ):
            continue
        simulator = Simulator(case)
        for step, expected in zip(case["steps"], case["expect"]["steps"], strict=True):
            if step["op"] != "schedule":
                simulator.carry_out(step)
                continue
            assert simulator.schedule(step) == {
                "statuses": expected.get("statuses") or [],
                "unscheduled": sorted(expected.get("unscheduled") or ()),
                "unprocessed": sorted(expected.get("unprocessed") or ()),
                "overflowingControllers": expected.get("overflowingControllers", 0),
            }, case["id"]
        snapshot = simulator.snapshot
        final = {name: sorted(map(full_name, snapshot.pods_on(name))) for name in snapshot.node_names}
        assert {k: v for k, v in final.items() if v} == {
            k: v for k, v in case["expect"]["finalPods"].items() if v
        }
        judged += 1
    assert judged == 121


def limits_of(case):
    given = case.get("limits") or {}
    thresholds = [given.get("maxNodesPerScaleUp", 0)]
    if not given.get("noContext"):
        if given.get("nodeGroup"):
            groups = [given["nodeGroup"], *(given.get("similarNodeGroups") or ())]
            thresholds.append(
                similar_groups_threshold([(one["maxSize"], one["targetSize"]) for one in groups])
            )
        thresholds.append(cluster_threshold(given.get("clusterMaxNodes", 0), given.get("currentNodes", 0)))
    return Limits(tuple(thresholds))


def copies_of(given):
    pod = pod_of(given["pod"])
    meta = pod.metadata
    pods = [
        replace(
            pod,
            metadata=replace(meta, name=f"{meta.name}-{index}", uid=f"{meta.namespace}-{meta.name}-{index}"),
        )
        for index in range(given["count"])
    ]
    return PodGroup(tuple(pods), classify(pods[0]))


def test_estimates():
    """Node counts, pods per group, the order of groups and each node's pods are upstream's."""
    judged = 0
    for case in load("estimate.json.gz")["cases"]:
        given = (
            *(case.get("pods") or ()),
            *(case.get("daemonPods") or ()),
            *(one["pod"] for one in case["groups"]),
        )
        if case.get("fastpath") or not all(map(in_scope, given)):
            continue
        found = estimate(
            snapshot_of(case),
            node_of(case["template"]),
            list(map(pod_of, case.get("daemonPods") or ())),
            list(map(copies_of, case["groups"])),
            limits_of(case),
        )
        expected = case["expect"]
        assert found.nodes == expected["nodeCount"], case["id"]
        assert [len(pods) for pods in found.scheduled] == expected["scheduledPerGroup"], case["id"]
        assert list(found.order) == expected["order"], case["id"]
        used = {name: {str(group): n for group, n in found.pods_on(name).items()} for name in found.added}
        assert {k: v for k, v in used.items() if v} == (expected.get("placement") or {}), case["id"]
        judged += 1
    assert judged == 86


def test_orders_of_many_groups():
    """More than twelve groups are packed in upstream's order, ties included."""
    cases = load("orders.json.gz")["cases"]
    for case in cases:
        pods = list(map(pod_of, case["pods"]))
        groups = [PodGroup((pod,), classify(pod)) for pod in pods]
        assert score_order(node_of(case["template"]), groups) == case["order"], case["id"]
    assert len(cases) == 50


def test_equivalence_groups():
    """Pending pods are grouped as upstream groups them."""
    judged = 0
    for case in load("equivalence.json.gz")["cases"]:
        if any(pod["spec"].get("resourceClaims") for pod in case["pods"]):
            continue
        groups = equivalence_groups(list(map(pod_of, case["pods"])))
        assert [list(map(full_name, group.pods)) for group in groups] == case["expect"]["groups"], case["id"]
        judged += 1
    assert judged == 76
