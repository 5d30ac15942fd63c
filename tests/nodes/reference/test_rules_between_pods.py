"""The reference's rules between pods against upstream's recorded verdicts and estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from json import dumps

import pytest
from tests.conformance import scheduling
from tests.conformance.cases import Selection, selected_cases
from tests.conformance.test_scheduling import DATA
from tests.nodes.reference.binpacking import Estimate
from tests.nodes.reference.equivalence import PodGroup
from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_affinity import Namespaces, affinity_refusal
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.spread import spread_refusal
from tests.nodes.reference.world import Json

SPREAD, AFFINITY = "PodTopologySpread", "InterPodAffinity"
RULES = ('"topologySpreadConstraints"', '"podAffinity"', '"podAntiAffinity"')
UNKNOWN = ('"Bogus"', '"Gt"', '"Lt"')
"""Operators that the reference does not know, as they show in a case."""


def recorded(*names: str) -> Iterator[Json]:
    """Yield the cases of these files in which there are rules between pods."""
    for case in selected_cases(scheduling, [DATA / f"{name}.json.gz" for name in names], Selection()):
        text = dumps(case)
        if any(one in text for one in RULES) and not any(one in text for one in UNKNOWN):
            yield case


@pytest.mark.slow
def test_the_filters_refuse_what_upstream_refused():
    """Spread and affinity refuse each node of each recorded case for the reasons that upstream gave, and no other node."""
    refused: Counter[str] = Counter()
    for case in recorded("predicates-systematic", "predicates-random"):
        for plugin, reasons in _filters(case).items():
            expected = case["expect"]["allPlugins"].get(plugin) or {}
            if "*" in expected:
                continue  # a selector that nobody can read refuses all nodes
            found = {one.name: reasons(one) for one in _places(case)}
            assert {name: one for name, one in found.items() if one} == expected, case["id"]
            refused[plugin] += len(expected)
    assert refused[SPREAD] > 4_000
    assert refused[AFFINITY] > 8_000


def _filters(case: Json) -> dict[str, Callable[[Place], list[str]]]:
    pod, places, namespaces = case["pod"], _places(case), _namespaces(case)
    return {
        SPREAD: lambda one: spread_refusal(pod, one, places),
        AFFINITY: lambda one: affinity_refusal(pod, one, places, namespaces),
    }


class InOrderAdded(Snapshot):
    """These recordings list nodes in the order in which they were added, whatever their names."""

    def add_node(self, place: Place) -> None:
        self.places = [*self.places, place]


@pytest.mark.slow
def test_estimates_are_those_of_upstream():
    """Recorded groups of pods need as many new nodes as upstream found, which take the same pods."""
    played = 0
    for case in recorded("estimate"):
        if case["fastpath"] or case["group"] == "large":
            continue
        groups = [_copies(one) for one in case["groups"]]
        template = Place(case["template"], case.get("daemonPods") or [])
        limit = scheduling.limits_of(case).max_nodes
        limit = 0 if limit is None else limit or -1
        count, pods = Estimate(_snapshot(case), template, limit).place_all(groups)
        placed = {one["metadata"]["uid"] for one in pods}
        numbers = [sum(one["metadata"]["uid"] in placed for one in group.pods) for group in groups]
        expected = case["expect"]
        assert (count, numbers) == (expected["nodeCount"], expected["scheduledPerGroup"]), case["id"]
        played += 1
    assert played > 200


def _snapshot(case: Json) -> Snapshot:
    made = InOrderAdded()
    made.begin(_places(case), _namespaces(case))
    return made


def _places(case: Json) -> list[Place]:
    places = {one["metadata"]["name"]: Place(one) for one in case.get("nodes") or ()}
    for pod in case.get("pods") or ():
        name = pod["spec"].get("nodeName") or (pod.get("status") or {}).get("nominatedNodeName")
        if name in places:
            places[name].pods.append(pod)
    return list(places.values())


def _namespaces(case: Json) -> Namespaces:
    return {
        one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in case.get("namespaces") or ()
    }


def _copies(given: Json) -> PodGroup:
    pods = []
    for number in range(given["count"]):
        pod = deepcopy(given["pod"])
        meta = pod["metadata"]
        meta["uid"] = f"uid-{meta['namespace']}-{meta['name']}-{number}"
        meta["name"] = f"{meta['name']}-{number}"
        pods.append(pod)
    return PodGroup(pods)
