"""The scoring suite: recorded scores of kube-scheduler's plugins, and the node that it chose, in v1.36 and v1.37.

A scenario is played with the rules of both: what v1.37 answers where it differs stands beside v1.36's answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace
from tests.conformance.cases import Case, difference
from tests.conformance.scheduling import devices_of, node_of, pod_of, volumes_of

from kubetide.objects.meta import LabelSelector
from kubetide.scheduling import classify, facts_of_scheduler
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

_SCORES, _FILTERS = "scores/1", "filter-drift/1"
_MINORS = (36, 37)
_VOLUME_KINDS = {"pvcs": "persistentVolumeClaims", "pvs": "persistentVolumes"}


def cases(document: Any) -> Iterator[Case]:
    """Yield the scenarios of a file of this format, with each minor version; other files have none."""
    form = document.get("format") if isinstance(document, dict) else None
    if form in {_SCORES, _FILTERS}:
        for scenario in document["scenarios"]:
            for minor in _MINORS:
                expect = _expect(scenario, minor) if form == _SCORES else scenario[f"expect_1_{minor}"]
                yield {**scenario, "minor": minor, "expect": expect, "scored": form == _SCORES}


def _expect(scenario: Case, minor: int) -> Case:
    expect: Case = scenario["expect"]
    if minor == 36:
        return expect
    differs = scenario.get("expect_1_37") or {}
    plugins = {**(expect.get("plugins") or {}), **(differs.get("plugins") or {})}
    feasible = expect.get("feasible") or ()
    if plugins.get("VolumeBinding", {}).get("skipped"):
        none = dict.fromkeys(feasible, 0)
        plugins["VolumeBinding"] = {"weight": 1, "raw": none, "normalized": none}
    return {**expect, **differs, **({"plugins": plugins} if plugins else {})}


def case_id(case: Case) -> str:
    return f"{case['name']} with v1.{case['minor']}"


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
    facts = facts_of_scheduler(case["minor"])
    gates = case.get("gates") or {}
    snapshot = ScoredSnapshot(
        replace(
            facts,
            namespaces=namespaces,
            volumes=volumes_of(objects),
            devices=devices_of(given),
            storage_capacity_scoring=gates.get("StorageCapacityScoring", facts.storage_capacity_scoring),
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
    spread = default_selector(given, selectors_of(case["input"]))
    pod = incoming(given, classify(given), spread, images=True, minor=case["minor"])
    names = snapshot.node_names
    order = snapshot.tree.names()
    fits = snapshot.feasible(pod.pod_class)
    feasible = [name for name in order if fits[snapshot.row(name)]]
    found: Case = {
        "order": order,
        "feasible": feasible,
        "infeasible": {
            name: {
                "plugin": refusal.plugin if refusal.phase != "PreFilterResult" else refusal.phase,
                "reasons": list(refusal.reasons),
            }
            for name in order
            if (refusal := snapshot.first_refusal(pod.pod_class, name)) is not None
        },
        "error": "",
    }
    if not case["scored"]:
        return _difference_of_filters(expect, found)
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


def _difference_of_filters(expect: Case, found: Case) -> str | None:
    infeasible = {
        name: {"plugin": one["plugin"], "reasons": one["reasons"] or []}
        for name, one in expect["infeasible"].items()
    }
    required = {"feasible": sorted(expect["feasible"]), "infeasible": infeasible}
    given = {"feasible": sorted(found["feasible"]), "infeasible": found["infeasible"]}
    return difference("expect", required, given)


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
