"""Prometheus for the time before the records begin, and the records from there on, as one run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import structs

from kubetide.experiments.capture.cluster import WORKLOADS, Cluster
from kubetide.experiments.capture.observed import Seen
from kubetide.experiments.capture.prometheus.history import History
from kubetide.experiments.capture.services import HpaHistory, Services
from kubetide.horizontal.facts.views import HpaView
from kubetide.objects.meta import ApiObject
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.workload import Deployment


def joined(history: History, cluster: Cluster, services: Services | None) -> Seen:
    """Return one run of both: as the cluster was at first, described as the records describe it, which know more.

    Args:
        cluster, services: From records that begin where the history ends.
    """
    notes = [f"Before the records, from Prometheus: {note}" for note in history.notes.always]
    return Seen(
        _cluster(history.cluster, cluster, notes), _services(history.services, services, notes), tuple(notes)
    )


def _cluster(before: Cluster, records: Cluster, notes: list[str]) -> Cluster:
    names = _group_names(before, records)
    lost = sorted(set(before.at_start) - set(names))
    if lost:
        notes.append(
            f"Node groups {', '.join(lost)} of Prometheus had no node any more when the records began; their nodes are left out."
        )
    found = Cluster(
        settings=records.settings,
        groups=records.groups,
        shapes=records.shapes,
        counts=[*before.counts, *records.counts],
        at_start={},
        pods=records.pods,
        loose=records.loose,
        advised=records.advised,
        first=before.first,
        last=records.last,
    )
    for group, nodes in before.at_start.items():
        if group in names:
            found.at_start.setdefault(names[group], []).extend(nodes)
    for boots in ({names.get(group, group): boots for group, boots in before.boots.items()}, records.boots):
        for group, times in boots.items():
            found.boots.setdefault(group, []).extend(times)
    found.readies, found.shutdowns, found.stops = records.readies, records.shutdowns, records.stops
    for field in WORKLOADS:
        described = {_key(item): item for item in records.workloads.get(field, ())}
        there = before.workloads.get(field, [])
        if field in ("pdbs", "namespaces"):
            found.workloads[field] = list(described.values())
            continue
        found.workloads[field] = [
            _as_it_was(described[_key(item)], item) if _key(item) in described else item for item in there
        ]
        came = [f"{key[0]}/{key[1]}" for key in described if key not in {_key(item) for item in there}]
        found.later[field] = [*before.later.get(field, ()), *came, *records.later.get(field, ())]
    found.later = {field: sorted(set(names)) for field, names in found.later.items() if names}
    for key in {*before.scaled, *records.scaled}:
        spans = [one.scaled[key] for one in (before, records) if key in one.scaled]
        found.scaled[key] = spans[0][0], spans[-1][1]
    return found


def _group_names(before: Cluster, records: Cluster) -> dict[str, str]:
    """Return what the records call each group: that of most of its nodes, or of the group of the same name."""
    of_node = {name: group for group, names in records.at_start.items() for name in names}
    known = {group.id for group in records.groups}
    found = {}
    for group, members in before.members.items():
        calls = Counter(of_node[name] for name in members if name in of_node)
        if calls:
            found[group] = min(calls, key=lambda name: (-calls[name], name))
        elif group in known:
            found[group] = group
    return found


def _key(item: ApiObject) -> tuple[str, str]:
    return item.metadata.namespace, item.metadata.name


def _as_it_was(described: ApiObject, before: ApiObject) -> ApiObject:
    """Return an object of the records with the replicas that it had before."""
    if isinstance(described, Deployment | StatefulSet) and isinstance(before, Deployment | StatefulSet):
        spec: Any = structs.replace(described.spec, replicas=before.spec.replicas)
        return structs.replace(described, spec=spec)
    return described


def _services(before: Services, records: Services | None, notes: list[str]) -> Services:
    if records is None:
        return before
    found = Services(
        records.settings,
        others=before.others,
        ready_after=[*before.ready_after, *records.ready_after],
        first=before.first,
        last=records.last,
        longest_gap=records.longest_gap,
    )
    for key, history in records.hpas.items():
        earlier = before.hpas.get(key)
        ticks = earlier.ticks if earlier else []
        if earlier is not None and _bounds(earlier.view) != _bounds(history.view):
            notes.append(
                f"HPA {'/'.join(key)}: its bounds were others before the records began; the scenario has those of the records."
            )
        found.hpas[key] = HpaHistory(history.view, [*ticks, *history.ticks], history.changed)
    notes += [
        f"HPA {'/'.join(key)} was gone when the records began: it is left out."
        for key in sorted(before.hpas.keys() - records.hpas.keys())
    ]
    return found


def _bounds(view: HpaView) -> tuple[int, int]:
    least = view.spec.min_replicas
    return 1 if least is None else least, view.spec.max_replicas
