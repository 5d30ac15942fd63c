"""The scheduling suite: recorded verdicts of kube-scheduler's filters and of the autoscaler's simulator.

Each case is decoded, put into a ``Snapshot`` and asked; what is compared is listed in
``first_difference`` of each form. Error texts are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec.structs import replace
from tests.conformance.cases import Case, difference

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceSlice
from kubetide.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from kubetide.scheduling import (
    FIRST_START,
    UNSCHEDULABLE,
    ClusterFacts,
    Devices,
    Limits,
    PodGroup,
    Snapshot,
    Volumes,
    classify,
    cluster_threshold,
    equivalence_groups,
    estimate,
    place,
    similar_groups_threshold,
)


def cases(document: Any) -> Iterator[Case]:
    """Yield the cases of a file of this kind, each with its cluster."""
    if not isinstance(document, dict):
        return
    clusters = document.get("clusters") or {}
    for case in document.get("cases") or ():
        if "expect" in case and "group" in case:
            yield {**clusters.get(case.get("cluster"), {}), **case}


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return str(case["group"])


def has_steps(case: Case) -> bool:
    return "steps" in case


def metric_types(case: Case) -> set[str]:
    return set()


def first_difference(case: Case) -> str | None:
    """Play a case; return None when every answer is the recorded one."""
    if "steps" in case:
        return _placement(case)
    if "template" in case:
        return _estimate(case)
    if "groups" in case["expect"]:
        return _equivalence(case)
    return _predicates(case)


# ── Objects ──


def node_of(given: Any) -> Node:
    return msgspec.convert(given, Node)


def pod_of(given: Any) -> Pod:
    return msgspec.convert(given, Pod)


def full_name(pod: Pod) -> str:
    return f"{pod.metadata.namespace}/{pod.metadata.name}"


def volumes_of(objects: Any) -> Volumes:
    def read(name: str, model: Any) -> list[Any]:
        return [msgspec.convert(one, model) for one in objects.get(name) or ()]

    def by_name(name: str, model: Any) -> dict[str, Any]:
        return {one.metadata.name: one for one in read(name, model)}

    claims = read("pvcs", PersistentVolumeClaim)
    return Volumes(
        persistent_volumes=by_name("pvs", PersistentVolume),
        claims={(one.metadata.namespace, one.metadata.name): one for one in claims},
        storage_classes=by_name("storageClasses", StorageClass),
        csi_nodes=by_name("csiNodes", CSINode),
        csi_drivers=by_name("csiDrivers", CSIDriver),
        capacities=tuple(read("csiStorageCapacities", CSIStorageCapacity)),
        attachments=tuple(read("volumeAttachments", VolumeAttachment)),
    )


def devices_of(objects: Any) -> Devices:
    claims = [msgspec.convert(one, ResourceClaim) for one in objects.get("resourceClaims") or ()]
    classes = [msgspec.convert(one, DeviceClass) for one in objects.get("deviceClasses") or ()]
    return Devices(
        slices=tuple(msgspec.convert(one, ResourceSlice) for one in objects.get("resourceSlices") or ()),
        claims={(one.metadata.namespace, one.metadata.name): one for one in claims},
        classes={one.metadata.name: one for one in classes},
    )


def snapshot_of(case: Case) -> Snapshot:
    """Build the cluster of a case; pods of nodes that are not there are left out."""
    snapshot = Snapshot()
    namespaces = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in case.get("namespaces") or ()
    }
    gates = case.get("featureGates") or ""
    snapshot.set_facts(
        ClusterFacts(
            namespaces=namespaces,
            volumes=volumes_of(case.get("objects") or {}),
            devices=devices_of(case.get("objects") or {}),
            taint_comparison="TaintTolerationComparisonOperators=true" in gates,
        )
    )
    for node in case.get("nodes") or ():
        snapshot.set_node(node_of(node))
    for pod in map(pod_of, case.get("pods") or ()):
        name = pod.spec.node_name or pod.status.nominated_node_name
        if name in snapshot:
            snapshot.add_pod(pod, name)
    return snapshot


# ── Filters ──


def _predicates(case: Case) -> str | None:
    """Feasible nodes; plugin, reasons, code and phase of each first failure; the node picked."""
    expect = case["expect"]
    snapshot = snapshot_of(case)
    pod_class = classify(pod_of(case["pod"]))
    names = snapshot.node_names
    fits = snapshot.feasible(pod_class)
    found = {
        "feasible": [name for row, name in enumerate(names) if fits[row]],
        "one by one": [name for name in names if snapshot.fits(pod_class, name)],
        "reasons": _refusals(snapshot, pod_class),
        "allPlugins": _by_plugin(snapshot, pod_class),
    }
    required = {
        "feasible": expect.get("feasible") or [],
        "one by one": expect.get("feasible") or [],
        "reasons": {
            name: {**one, "reasons": one.get("reasons") or []}
            for name, one in (expect.get("reasons") or {}).items()
        },
        "allPlugins": expect.get("allPlugins") or {},
    }
    # What FailedScheduling would count must add up to the reasons of the single nodes.
    required["counts"] = _counted(required["reasons"])
    diagnosis = snapshot.diagnose(pod_class)
    found["counts"] = diagnosis.reasons
    # So must the nodes that preemption looks at.
    required["resolvable"] = sorted(
        name for name, one in required["reasons"].items() if one.get("code") == UNSCHEDULABLE
    )
    found["resolvable"] = sorted(name for name, can in zip(names, diagnosis.resolvable, strict=True) if can)
    if not expect.get("anyNodeError"):
        row = snapshot.first_fit(pod_class, FIRST_START, snapshot.unschedulable)
        found["anyNode"] = names[row] if row >= 0 else None
        required["anyNode"] = expect.get("anyNode")
    return difference("expect", required, found)


def _refusals(snapshot: Snapshot, pod_class: Any) -> dict[str, Any]:
    refused: dict[str, Any] = {}
    for name in snapshot.node_names:
        refusal = snapshot.first_refusal(pod_class, name)
        if refusal is not None:
            one = {"plugin": refusal.plugin, "reasons": list(refusal.reasons), "phase": refusal.phase}
            refused[name] = {**one, "code": refusal.code} if refusal.code else one
    return refused


def _counted(reasons: dict[str, Any]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for one in reasons.values():
        left_out = one["phase"] == "PreFilterResult"
        for reason in [f"node(s) didn't satisfy plugin(s) [{one['plugin']}]"] if left_out else one["reasons"]:
            counts[reason] = counts.get(reason, 0) + 1
    return counts


def _by_plugin(snapshot: Snapshot, pod_class: Any) -> dict[str, Any]:
    found = snapshot.refusals_by_plugin(pod_class)
    prefixes = tuple(
        prefix
        for name in found
        for prefix in (f'running PreFilter plugin "{name}": ', f'running "{name}" filter plugin: ')
    )
    return {
        plugin: {
            node: [_plain(text, prefixes) for text in refusal.reasons] for node, refusal in refused.items()
        }
        for plugin, refused in found.items()
    }


def _plain(text: str, prefixes: tuple[str, ...]) -> str:
    """Take off what the framework puts before a plugin's error."""
    for prefix in prefixes:
        text = text.removeprefix(prefix)
    return text


# ── Placement ──


class Simulator:
    """Carries out the steps of a recorded placement sequence."""

    def __init__(self, case: Case) -> None:
        self.snapshot = snapshot_of(case)
        self.start = FIRST_START
        self.old_hints: dict[str, str] = {}
        self.hints: dict[str, str] = {}
        self.depth = 0

    def schedule(self, step: Case) -> dict[str, Any]:
        acceptable = step.get("acceptableNodes")
        names = self.snapshot.node_names
        result = place(
            self.snapshot,
            list(map(pod_of, step["pods"])),
            hints={**self.old_hints, **self.hints},
            exclude=[name for name in names if acceptable is not None and name not in acceptable],
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

    def carry_out(self, step: Case) -> None:
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
                raise ValueError(f"step {other!r} is not known")


def _placement(case: Case) -> str | None:
    """Where each pod goes, in order, what is left, and all pods at the end."""
    simulator = Simulator(case)
    for number, (step, expected) in enumerate(zip(case["steps"], case["expect"]["steps"], strict=True)):
        if step["op"] != "schedule":
            simulator.carry_out(step)
            continue
        required = {
            "statuses": expected.get("statuses") or [],
            "unscheduled": sorted(expected.get("unscheduled") or ()),
            "unprocessed": sorted(expected.get("unprocessed") or ()),
            "overflowingControllers": expected.get("overflowingControllers", 0),
        }
        found = difference(f"steps[{number}]", required, simulator.schedule(step))
        if found:
            return found
    snapshot = simulator.snapshot
    final = {name: sorted(map(full_name, snapshot.pods_on(name))) for name in snapshot.node_names}
    return difference(
        "finalPods",
        {name: pods for name, pods in case["expect"]["finalPods"].items() if pods},
        {name: pods for name, pods in final.items() if pods},
    )


# ── Estimates ──


def limits_of(case: Case) -> Limits:
    given = case.get("limits") or {}
    thresholds = [given.get("maxNodesPerScaleUp", 0)]
    if not given.get("noContext"):
        if given.get("nodeGroup"):
            groups = [given["nodeGroup"], *(given.get("similarNodeGroups") or ())]
            sizes = [(one["maxSize"], one["targetSize"]) for one in groups]
            thresholds.append(similar_groups_threshold(sizes))
        thresholds.append(cluster_threshold(given.get("clusterMaxNodes", 0), given.get("currentNodes", 0)))
    return Limits(tuple(thresholds))


def copies_of(given: Any) -> PodGroup:
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


def _estimate(case: Case) -> str | None:
    """Node count, pods per group, the order of groups, and each node's pods; or a recorded variant."""
    found = estimate(
        snapshot_of(case),
        node_of(case["template"]),
        list(map(pod_of, case.get("daemonPods") or ())),
        list(map(copies_of, case["groups"])),
        limits_of(case),
        fast_path=case.get("fastpath", False),
    )
    expect = case["expect"]
    answer = {
        "nodeCount": found.nodes,
        "scheduledPerGroup": [len(pods) for pods in found.scheduled],
        "order": list(found.order),
    }
    used = {
        name: {str(one): n for one, n in found.pods_on(name).items()}
        for name in (*found.added, *found.borrowed)
    }
    answer["placement"] = {name: pods for name, pods in used.items() if pods}
    required = {key: expect.get(key) for key in answer}
    required["placement"] = expect.get("placement") or {}
    differs = difference("expect", required, answer)
    if differs and case.get("orderSensitive"):
        scheduled = sum(len(pods) for pods in found.scheduled)
        seen = [(one["nodeCount"], one["scheduled"]) for one in expect.get("variants") or ()]
        if (found.nodes, scheduled) in seen:
            return None
    return differs


# ── Equivalence ──


def _equivalence(case: Case) -> str | None:
    """The groups of pods that count as copies of one."""
    groups = equivalence_groups(list(map(pod_of, case["pods"])))
    found = [[full_name(pod) for pod in one.pods] for one in groups]
    return difference("groups", case["expect"]["groups"], found)
