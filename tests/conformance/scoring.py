"""The scoring suite: recorded scores of kube-scheduler's plugins, and the node that it chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from tests.conformance.cases import Case, difference
from tests.conformance.scheduling import devices_of, node_of, pod_of, volumes_of

from kubetide.objects.meta import LabelSelector
from kubetide.scheduling import ClusterFacts, classify
from kubetide.scheduling.scoring import (
    DEFAULT,
    PROFILES,
    Incoming,
    NodeChooser,
    OwnerSelectors,
    ScoredSnapshot,
    ScoreError,
    default_selector,
    incoming,
)

_FORMAT = "scores/1"
_VOLUME_KINDS = {"pvcs": "persistentVolumeClaims", "pvs": "persistentVolumes"}


def cases(document: Any) -> Iterator[Case]:
    """Yield the scenarios of a file of this format; other files have none."""
    if isinstance(document, dict) and document.get("format") == _FORMAT:
        yield from document["scenarios"]


def case_id(case: Case) -> str:
    return str(case["name"])


def group(case: Case) -> str:
    return str(case["group"])


def has_steps(case: Case) -> bool:
    return False


def metric_types(case: Case) -> set[str]:
    return set()


def snapshot_of(case: Case) -> ScoredSnapshot:
    """Build the cluster of a scenario."""
    given = case["input"]
    objects = {**given, **{ours: given.get(theirs) for ours, theirs in _VOLUME_KINDS.items()}}
    namespaces = {
        one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in given.get("namespaces") or ()
    }
    snapshot = ScoredSnapshot(
        ClusterFacts(
            namespaces=namespaces,
            volumes=volumes_of(objects),
            devices=devices_of(given),
            storage_capacity_scoring=(case.get("gates") or {}).get("StorageCapacityScoring", False),
        )
    )
    for node in given.get("nodes") or ():
        snapshot.set_node(node_of(node))
    for pod in map(pod_of, given.get("pods") or ()):
        snapshot.add_pod(pod, pod.spec.node_name)
    return snapshot


def selectors_of(given: Case) -> OwnerSelectors:
    """Return what selects pods in a scenario: Services and owners."""
    services: dict[str, list[dict[str, str]]] = {}
    for one in given.get("services") or ():
        selector = (one.get("spec") or {}).get("selector")
        if selector is not None:
            services.setdefault(one["metadata"].get("namespace", ""), []).append(selector)

    def owned(name: str, version: str, kind: str) -> dict[tuple[str, str, str, str], Any]:
        return {
            (version, kind, one["metadata"].get("namespace", ""), one["metadata"]["name"]): (
                one.get("spec") or {}
            ).get("selector")
            for one in given.get(name) or ()
        }

    selectors = {
        **owned("replicaSets", "apps/v1", "ReplicaSet"),
        **owned("statefulSets", "apps/v1", "StatefulSet"),
    }
    controllers = owned("replicationControllers", "v1", "ReplicationController")
    return OwnerSelectors(
        services=services,
        owners={
            key: None if one is None else msgspec.convert(one, LabelSelector)
            for key, one in selectors.items()
        },
        controllers={key: one or {} for key, one in controllers.items()},
    )


def first_difference(case: Case) -> str | None:
    """Order and verdicts on nodes, raw and normalized scores of each plugin, totals, and the node chosen."""
    expect = case["expect"]
    snapshot = snapshot_of(case)
    given = pod_of(case["input"]["pod"])
    pod = incoming(given, classify(given), default_selector(given, selectors_of(case["input"])), images=True)
    names = snapshot.node_names
    order = snapshot.tree.names()
    fits = snapshot.feasible(pod.pod_class)
    feasible = [name for name in order if fits[snapshot.row(name)]]
    found: Case = {
        "order": order,
        "feasible": feasible,
        "infeasible": {
            name: {"plugin": refusal.plugin, "reasons": list(refusal.reasons)}
            for name in order
            if (refusal := snapshot.first_refusal(pod.pod_class, name)) is not None
        },
        "error": "",
    }
    required: Case = {key: expect.get(key) or type(one)() for key, one in found.items()}
    rows = np.array([snapshot.row(name) for name in feasible], np.int64)
    try:
        if feasible:
            found |= _scored(pod, snapshot, rows, feasible)
    except ScoreError as error:
        found["error"] = f"prescore: {error}"
    for key in ("plugins", "total", "best"):
        if key in found:
            required[key] = expect.get(key)
    if "plugins" not in found and (expect.get("plugins") or expect.get("total")):
        return f"nothing was scored, expected {expect['plugins']}"
    if "chosen" in expect:
        chosen = NodeChooser(PROFILES[DEFAULT]).choose(pod, snapshot)
        required["chosen"], found["chosen"] = expect["chosen"], chosen
    assert list(names) == [one["metadata"]["name"] for one in case["input"]["nodes"]]
    return difference("expect", required, found)


def _scored(pod: Incoming, snapshot: ScoredSnapshot, rows: Any, feasible: list[str]) -> Case:
    profile = PROFILES[DEFAULT]
    plugins: Case = {}
    weights = {plugin.name: weight for plugin, weight in profile.plugins}
    for name, scored in profile.scores(pod, snapshot, rows).items():
        plugins[name] = {"weight": weights[name]}
        if scored is None:
            plugins[name]["skipped"] = True
            continue
        plugins[name]["raw"] = dict(zip(feasible, scored.raw.tolist(), strict=True))
        plugins[name]["normalized"] = dict(zip(feasible, scored.normalized.tolist(), strict=True))
    total = {
        name: sum(one["weight"] * one["normalized"][name] for one in plugins.values() if "raw" in one)
        for name in feasible
    }
    best = sorted(name for name, score in total.items() if score == max(total.values()))
    return {"plugins": plugins, "total": total, "best": best}
