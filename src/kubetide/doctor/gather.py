"""Reads a snapshot from a cluster: lists only, nothing is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import yaml

from kubetide.doctor.snapshot import GroupStatus, Server, Snapshot
from kubetide.doctor.workloads import PLURALS
from kubetide.nodes.facts.priorities import PRIORITIES_KEY, PRIORITY_MAP, PriorityMap
from kubetide.nodes.memory import GroupLearned
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY, read_learned
from kubetide.objects.cluster import Lease
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    CLAIMS,
    CONFIG_MAPS,
    CRON_HPAS,
    DAEMON_SETS,
    DEPLOYMENTS,
    ELASTIC_WORKLOADS,
    EVENTS,
    HPAS,
    HPCS,
    JOBS,
    LEASES,
    NAMESPACES,
    NODES,
    PDBS,
    PERSISTENT_VOLUMES,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    SCALED_OBJECTS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    TKESTACK_CRON_HPAS,
    VPAS,
    Kind,
)
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, CloudError, NotFound
from kubetide.runtime.handover.ownership import MANAGED_HPAS, OWN, view_of
from kubetide.schedules.kinds.base import HPA
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339, seconds
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

_FIELDS: Final[dict[str, Kind[Any]]] = {
    "pods": PODS,
    "nodes": NODES,
    "namespaces": NAMESPACES,
    "deployments": DEPLOYMENTS,
    "replica_sets": REPLICA_SETS,
    "stateful_sets": STATEFUL_SETS,
    "daemon_sets": DAEMON_SETS,
    "replication_controllers": REPLICATION_CONTROLLERS,
    "jobs": JOBS,
    "hpas": HPAS,
    "vpas": VPAS,
    "elastic": ELASTIC_WORKLOADS,
    "hpcs": HPCS,
    "cron_hpas": CRON_HPAS,
    "tkestack_cron_hpas": TKESTACK_CRON_HPAS,
    "scaled_objects": SCALED_OBJECTS,
    "pdbs": PDBS,
    "volumes": PERSISTENT_VOLUMES,
    "claims": CLAIMS,
    "storage_classes": STORAGE_CLASSES,
    "requests": PROVISIONING_REQUESTS,
    "buffers": CAPACITY_BUFFERS,
    "pod_templates": POD_TEMPLATES,
}
"""The kind of each field of ``Snapshot``, in the order in which they are read."""

_INCREASED: Final = re.compile(r"Scale-up: (?:setting )?group (\S+) size ")

_LOWER_KINDS: Final = {HPA, *map(str.lower, PLURALS)}

_LEASE_NAMES: Final = ("cluster-autoscaler", "karpenter-leader-election")
"""The Leases of node autoscalers: upstream's and ours, and Karpenter's."""


async def gather(
    cluster: Cluster,
    now: Callable[[], Instant],
    *,
    cloud: Cloud | None,
    settings: Settings,
    recommender: RecommenderSettings,
) -> Snapshot:
    """Return the snapshot; ``unread`` names the kinds that cannot be read, with the reason.

    Args:
        cluster: What is read.
        now: Returns the time by which leases and ages are compared, by the API server's clock; asked once the objects are
            read, and used in whole seconds.
        cloud: Whose groups are read; None for none.
        settings, recommender: Of the node loop, and of the loop that recommends requests.
    """
    found: dict[str, Any] = {}
    unread: dict[str, str] = {}
    odd: dict[str, str] = {}
    for name, kind in _FIELDS.items():
        if kind is POD_TEMPLATES and not (found.get("requests") or found.get("buffers")):
            continue
        try:
            listing = await cluster.list(kind)
            found[name] = tuple(listing.items)
            for one in listing.unread:
                where = "/".join(filter(None, (one.metadata.namespace, one.metadata.name)))
                odd[f"{kind.kind.lower()} {where}"] = one.problem
        except NotFound:
            # A kind of an API that is not installed has no objects.
            found[name] = ()
        except ApiError as error:
            unread[kind.plural] = str(error)
    of_cloud = {} if cloud is None else await _of_cloud(cloud, unread)
    read_at = now()
    snapshot = Snapshot(
        now=Instant(read_at - read_at % seconds(1)),
        **found,
        **of_cloud,
        group_statuses=await _statuses(cluster, settings),
        priorities=await _priorities(cluster, settings),
        learned=await _learned(cluster, settings),
        servers=await _servers(cluster),
        leases=await _leases(cluster),
        unread=unread,
        unread_objects=odd,
        settings=settings,
        recommender=recommender,
    )
    return replace(snapshot, missing_scales=await _missing(cluster, snapshot))


async def _of_cloud(cloud: Cloud, unread: dict[str, str]) -> dict[str, Any]:
    """Return the snapshot's fields of a cloud's groups; none of groups that cannot be read, which ``unread`` then names."""
    try:
        groups: Sequence[NodeGroup] = await cloud.refresh()
    except CloudError as error:
        unread["node groups"] = str(error)
        return {}
    try:
        return {"groups": tuple(groups), "scaling_policies": await cloud.scaling_policies()}
    except CloudError as error:
        return {"groups": tuple(groups), "scaling_policies_error": str(error)}


async def _statuses(cluster: Cluster, settings: Settings) -> tuple[GroupStatus, ...]:
    try:
        found = await cluster.get(CONFIG_MAPS, settings.status_config_map_name, namespace=settings.namespace)
    except ApiError:
        return ()
    statuses = read_statuses((found.data or {}).get("status", ""))
    # The document has no times of a group of which no machine was ever seen before.
    if any(one.scale_up == "InProgress" and one.since is None for one in statuses):
        increases = await _increases(cluster)
        statuses = tuple(one._replace(since=one.since or increases.get(one.name)) for one in statuses)
    return statuses


async def _increases(cluster: Cluster) -> Mapping[str, Instant]:
    """Return when each group was last increased, by the events of a node autoscaler.

    Source: Cluster Autoscaler, executor of scale-ups.
    """
    try:
        events = (await cluster.list(EVENTS, fields="reason=ScaledUpGroup")).items
    except ApiError:
        return {}
    found: dict[str, Instant] = {}
    for event in events:
        group, at = _INCREASED.match(event.message), _time(event.last_timestamp or event.first_timestamp)
        if group is not None and at is not None:
            found[group[1]] = max(at, found.get(group[1], at))
    return found


async def _priorities(cluster: Cluster, settings: Settings) -> PriorityMap | None:
    try:
        found = await cluster.get(CONFIG_MAPS, PRIORITY_MAP, namespace=settings.namespace)
    except NotFound:
        return PriorityMap()
    except ApiError:
        return None
    return PriorityMap(True, found.metadata.uid, (found.data or {}).get(PRIORITIES_KEY))


async def _learned(cluster: Cluster, settings: Settings) -> Mapping[str, GroupLearned]:
    try:
        found = await cluster.get(CONFIG_MAPS, CONFIG_MAP, namespace=settings.namespace)
        return read_learned((found.data or {}).get(DATA_KEY, "")).groups
    except (ApiError, ValueError):
        return {}


def read_statuses(text: str) -> tuple[GroupStatus, ...]:
    """Return the groups in the status document of a node autoscaler; none if it cannot be read.

    Source: Cluster Autoscaler, cluster state status (YAML since 1.30).
    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError:
        return ()
    groups = document.get("nodeGroups") if isinstance(document, dict) else None
    try:
        return tuple(_status(one) for one in groups or () if isinstance(one, dict) and one.get("name"))
    except (AttributeError, TypeError, ValueError):  # text where a map, a list or a number belongs
        return ()


def _status(one: dict[str, Any]) -> GroupStatus:
    health, scale_up = one.get("health") or {}, one.get("scaleUp") or {}
    backoff, counts = scale_up.get("backoffInfo") or {}, health.get("nodeCounts") or {}
    return GroupStatus(
        name=str(one["name"]),
        min_size=int(health.get("minSize") or 0),
        max_size=int(health.get("maxSize") or 0),
        target_size=int(health.get("cloudProviderTarget") or 0),
        scale_up=str(scale_up.get("status") or ""),
        error_code=str(backoff.get("errorCode") or ""),
        error_message=str(backoff.get("errorMessage") or ""),
        since=_time(scale_up.get("lastTransitionTime")),
        registered=int((counts.get("registered") or {}).get("total") or 0),
        unregistered=int(counts.get("unregistered") or 0) + int(counts.get("longUnregistered") or 0),
    )


def _time(text: object) -> Instant | None:
    """Return a time of the document; None if there is none that can be read."""
    try:
        return parse_rfc3339(str(text))
    except TimeFormatError:
        return None


async def _missing(cluster: Cluster, snapshot: Snapshot) -> frozenset[tuple[str, str, str]]:
    """Return the targets of kinds that no list holds and whose scale is not there."""
    tables = snapshot.time_tables.tables.values()
    # Capital letters play no part in the kind that a time table names.
    asked = {
        (one.target.kind, one.target.namespace, one.target.name): (one.target.api_version, str.lower)
        for one in tables
        if one.target.kind.lower() not in _LOWER_KINDS and one.target.kind and one.target.name
    } | {
        (ref.kind, hpa.metadata.namespace, ref.name): (ref.api_version, str)
        for hpa in snapshot.hpas
        if (ref := hpa.spec.scale_target_ref).kind not in PLURALS
    }
    if not asked:
        return frozenset()
    served = [(kind.api_version.partition("/")[0], kind) for kind in await cluster.kinds()]
    missing = set()
    for key, (api_version, spelled) in sorted(asked.items()):
        name = (api_version.partition("/")[0], spelled(key[0]))
        kind = next((one for group, one in served if (group, spelled(one.kind)) == name), None)
        try:
            if kind is not None:
                await cluster.get_scale(kind, key[2], namespace=key[1])
                continue
        except NotFound:
            pass
        except ApiError:
            continue
        missing.add(key)
    return frozenset(missing)


async def _servers(cluster: Cluster) -> tuple[Server, ...]:
    try:
        hpas = (await cluster.list(MANAGED_HPAS)).items
    except ApiError:
        return ()
    found = []
    for view in map(view_of, hpas):
        key = (view.namespace, view.name)
        found += [Server(key, write.manager, write.at) for write in view.foreign]
        if view.own is not None:
            found.append(Server(key, OWN, view.own))
    return tuple(found)


async def _leases(cluster: Cluster) -> tuple[Lease, ...]:
    found: list[Lease] = []
    for name in _LEASE_NAMES:
        try:
            found += (await cluster.list(LEASES, fields=f"metadata.name={name}")).items
        except ApiError:
            continue
    return tuple(found)
