"""Sources of demand: one function each, called in the order of ``SOURCES``.

A source gives pods that want a place. Pods that do not exist yet are made from their workload's pod
template; they are counted like pods, but get no events. A new source is one function and one line in
``SOURCES``, or an entry point of the group ``kubetide.demand-sources`` of another package; ``settings.demand_sources`` says which are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import Final

import msgspec
from msgspec.structs import replace

from kubetide.nodes.capacity.buffers.inject import BUFFERS, placeholders
from kubetide.nodes.facts.new_pods import as_new
from kubetide.nodes.facts.pods import (
    found_no_node,
    is_daemon_set_pod,
    is_mirror_pod,
    is_static_pod,
    is_unschedulable,
    virtual_pod_name,
    without_node,
)
from kubetide.nodes.facts.template_pods import with_default_requests, with_host_ports
from kubetide.nodes.facts.tpu import without_tpu_requests
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.scale_up.pending.injected_pods import INJECTED, injected_pods
from kubetide.nodes.scale_up.pending.replacements import REPLACEMENTS, replacement_pods
from kubetide.nodes.state import State
from kubetide.objects.meta import Key, ObjectMeta, OwnerReference, controller_of
from kubetide.objects.pod import Pod, PodSpec
from kubetide.objects.workload import ReplicaSet
from kubetide.plan.board import Intent, Workload, missing_replicas, percentile_95
from kubetide.ports.plugins import Plugin, PluginGroup, PluginNotUsable
from kubetide.units.time import Duration, Instant, after, before, minutes

EXPECTED_BOOT = minutes(3)
EXPECTED_START = minutes(1)

_WITH_SETS = ("Deployment", "ReplicaSet")
"""Of these the ReplicaSets say what a new pod looks like, also while there is none."""


class Asked(msgspec.Struct, frozen=True):
    """A pod that needs a node; ``source`` names who asks, ``virtual`` means that it does not exist yet."""

    pod: Pod
    source: str
    virtual: bool = False


def pending_pods(state: State, now: Instant) -> list[Asked]:
    """Return the pods that the scheduler found no node for, in name order.

    As upstream, behind them the pods that bypassed schedulers have not looked at.
    """
    del now
    settings = state.settings
    pods = [
        pod
        for _, pod in sorted(state.pending.items())
        if is_unschedulable(pod, settings)
        and not is_expendable(pod, settings.expendable_pods_priority_cutoff)
    ]
    if settings.bypassed_scheduler_names:
        pods.sort(key=lambda pod: not found_no_node(pod))
    return [Asked(without_tpu_requests(pod), "pending") for pod in pods]


def drained_pods(state: State, now: Instant) -> list[Asked]:
    """Return the pods of nodes that are being drained: successors of theirs will need a place.

    Source: Cluster Autoscaler, currently drained nodes: all but DaemonSet, static and mirror pods, also those of no
    controller, that are not being deleted yet: of those the new ones are there, and count by themselves.
    """
    del now
    found = []
    for name, deletion in sorted(state.memory.scale_down.deletions.items()):
        if not deletion.drain or name not in state.nodes:
            continue
        for pod in state.snapshot.pods_on(name):
            of_node = is_daemon_set_pod(pod) or is_mirror_pod(pod) or is_static_pod(pod)
            if not of_node and pod.metadata.deletion_timestamp is None:
                found.append(Asked(without_node(pod), "drain"))
    return sorted(found, key=lambda asked: (asked.pod.metadata.namespace, asked.pod.metadata.name))


def proactive_pods(state: State, now: Instant) -> list[Asked]:
    """Return the pods that controllers have yet to create, with ``--enable-proactive-scaleup``."""
    del now
    return [Asked(without_tpu_requests(pod), INJECTED, virtual=True) for pod in injected_pods(state)]


def buffer_pods(state: State, now: Instant) -> list[Asked]:
    """Return the placeholder pods of CapacityBuffers; as upstream, expendable ones buy nothing."""
    del now
    cutoff = state.settings.expendable_pods_priority_cutoff
    return [
        Asked(without_tpu_requests(pod), BUFFERS, virtual=True)
        for pod in placeholders(state)
        if not is_expendable(pod, cutoff)
    ]


def pods_to_replace(state: State, now: Instant) -> list[Asked]:
    """Return the larger pods that are to take the place of running ones and would not fit there."""
    del now
    return [Asked(without_tpu_requests(pod), REPLACEMENTS, virtual=True) for pod in replacement_pods(state)]


def intended_pods(state: State, now: Instant) -> list[Asked]:
    """Return the replicas that the board announces and that do not exist yet.

    Of several intents for a workload the largest that is due holds; one counts as due as early as its
    nodes must be asked for (``lead_of``), until its own end. Replicas that are due already count from the next tick on:
    their controller makes them meanwhile, and pending pods need no intent. Replicas that do not
    exist ``intent_patience`` after their due time are given up. A workload without ReplicaSets, such as a
    StatefulSet or a custom one, gets copies of its present pods; without a pod nothing is known to copy.
    """
    intents: dict[Workload, Intent] = {}
    boot = expected_boot(state) if state.intents else EXPECTED_BOOT
    for intent in state.intents:
        if not is_asked_for(intent) or asked_from(intent, boot) > now:
            continue
        if intent.until is not None and intent.until < now:
            continue
        best = intents.get(intent.workload)
        if best is None or intent.replicas > best.replicas:
            intents[intent.workload] = intent
    if not intents:
        state.memory.missing_since = {}
        return []
    found = []
    sets = _sets_by_workload(state)
    controllers = _controllers(state, intents, sets)
    since = state.memory.missing_since
    missing_now: dict[str, Instant] = {}
    for workload in sorted(intents):
        uids = controllers[workload]
        missing = missing_replicas(intents[workload].replicas, _count(state, uids))
        if not missing:
            continue
        name = f"{workload.kind}/{workload.namespace}/{workload.name}"
        first = missing_now[name] = since.get(name, now)
        # Half a period lets the next tick come a little early.
        if intents[workload].due <= first and now < after(first, Duration(state.settings.scan_interval // 2)):
            continue
        if after(Instant(max(first, intents[workload].due)), state.settings.intent_patience) < now:
            continue
        prototype = _prototype(state, workload, sets.get(workload, ()), _pods_of(state, uids))
        if prototype is not None:
            prototype = as_new(prototype, state.memory.new_pods)
            found += [
                Asked(_numbered(prototype, workload, at), intents[workload].source, virtual=True)
                for at in range(missing)
            ]
    state.memory.missing_since = missing_now
    return found


def existing_pods(state: State, workloads: Collection[Workload]) -> dict[Workload, int]:
    """Return how many pods of each workload exist."""
    controllers = _controllers(state, workloads, _sets_by_workload(state))
    return {workload: _count(state, uids) for workload, uids in controllers.items()}


def _controllers(
    state: State, workloads: Collection[Workload], sets: Mapping[Workload, Sequence[ReplicaSet]]
) -> dict[Workload, list[str]]:
    """Return, by workload, the uids of what controls its pods: its ReplicaSets, else the workload itself."""
    owners = _owners(state) if any(workload.kind not in _WITH_SETS for workload in workloads) else {}
    return {
        workload: [one.metadata.uid for one in sets.get(workload, ())] or owners.get(workload, [])
        for workload in workloads
    }


def _count(state: State, uids: Iterable[str]) -> int:
    """Return how many pods these controllers have."""
    return sum(state.held_pods.count_controlled_by(uid) for uid in uids)


def expected_boot(state: State) -> Duration:
    """Return how long nodes take from a request to the joining: the 95th percentile of the slowest group.

    Where none was ever seen it is ``EXPECTED_BOOT``.
    """
    return max(
        (percentile_95(times) for times in state.memory.join_times.values() if times), default=EXPECTED_BOOT
    )


def lead_of(intent: Intent, boot: Duration) -> Duration:
    """Return how long before its due time the nodes of an intent must be asked for.

    That is the time that they take, and that of the workload's pods to start; of pods that were never seen to start it is
    ``EXPECTED_START``.
    """
    start = EXPECTED_START if intent.start is None else intent.start
    return Duration(boot + start)


def asked_from(intent: Intent, boot: Duration) -> Instant:
    """Return from when on nodes are asked for on behalf of an intent; ``boot`` as in ``expected_boot``."""
    # A boot that was measured while the clock was set back may be negative.
    return Instant(min(intent.due, before(intent.due, lead_of(intent, boot))))


def demand_may_begin(state: State, now: Instant) -> Instant | None:
    """Return when the passing of time alone may bring new demand: when the next intent counts; None for never.

    Sources beyond the built-in ones may look at the time: with one of them it is now.
    """
    sources = state.settings.demand_sources
    if any(name not in (*_ALWAYS, "intents") for name in sources):
        return now
    if "intents" not in sources or not state.intents:
        return None
    boot = expected_boot(state)
    begins = (asked_from(one, boot) for one in state.intents if is_asked_for(one))
    return min((at for at in begins if at > now), default=None)


def is_asked_for(intent: Intent) -> bool:
    """Return whether an intent counts at all: an autoscaler announces its target itself."""
    return intent.workload.kind != "HorizontalPodAutoscaler"


Source = Callable[[State, Instant], list[Asked]]

PLUGINS: Final = PluginGroup[Source](
    name="kubetide.demand-sources",
    setting="--demand-sources",
    noun="demand source",
    must="be a function of a state and a time",
    fits=callable,
)

SOURCES: dict[str, Source] = {
    "pending": pending_pods,
    INJECTED: proactive_pods,
    BUFFERS: buffer_pods,
    "drain": drained_pods,
    REPLACEMENTS: pods_to_replace,
    "intents": intended_pods,
}
"""By name; all but ``intents`` are always asked, and answer where their flags say so."""

_ALWAYS = ("pending", INJECTED, BUFFERS, "drain", REPLACEMENTS)


def check_sources(names: Sequence[str]) -> None:
    """Raise ValueError for a source that does not exist."""
    for name in names:
        try:
            source_of(name)
        except PluginNotUsable as error:
            known = ", ".join(SOURCES)
            raise ValueError(
                f"{PLUGINS.setting}: there is no source {name!r}; there are {known}; {error}"
            ) from error


def source_of(name: str) -> Source:
    """Return a built-in source, or that of another package. Raises PluginNotUsable."""
    return SOURCES[name] if name in SOURCES else named_source(name)[1]


@cache
def named_source(name: str) -> tuple[Plugin, Source]:
    """Return the source of another package. Raises PluginNotUsable."""
    return PLUGINS.load(name)


def every_demand(state: State, now: Instant) -> list[Asked]:
    """Return the pods of all sources that are on. Raises PluginNotUsable for a source that is not installed."""
    names = (*_ALWAYS, *(name for name in state.settings.demand_sources if name not in _ALWAYS))
    return [asked for name in names for asked in source_of(name)(state, now)]


def workload_of(state: State, pod: Pod) -> Workload | None:
    """Return the scalable object of a pod: its Deployment, or else its controller."""
    owner = controller_of(pod.metadata)
    if owner is None or owner.kind == "DaemonSet":
        return None
    namespace = pod.metadata.namespace
    if owner.kind == "ReplicaSet":
        replica_set = state.replica_sets.get((namespace, owner.name))
        above = controller_of(replica_set.metadata) if replica_set else None
        if above is not None:
            return Workload(namespace, above.kind, above.name)
    return Workload(namespace, owner.kind, owner.name)


def _sets_by_workload(state: State) -> dict[Workload, list[ReplicaSet]]:
    """Return the ReplicaSets of each workload, in name order; a ReplicaSet is a workload as well."""
    found: dict[Workload, list[ReplicaSet]] = {}
    for (namespace, name), replica_set in sorted(state.replica_sets.items(), key=_first):
        found.setdefault(Workload(namespace, "ReplicaSet", name), []).append(replica_set)
        owner = controller_of(replica_set.metadata)
        if owner is not None:
            found.setdefault(Workload(namespace, owner.kind, owner.name), []).append(replica_set)
    return found


def _owners(state: State) -> dict[Workload, list[str]]:
    """Return the uids of the workloads that control pods themselves, in order of uid."""
    found: dict[Workload, list[str]] = {}
    for uid, namespace, owner in state.held_pods.controllers():
        if owner.kind not in _WITH_SETS:
            found.setdefault(Workload(namespace, owner.kind, owner.name), []).append(uid)
    return found


def _pods_of(state: State, uids: Sequence[str]) -> list[Pod]:
    """Return the pods of these controllers that are not being deleted, in name order."""
    found = [pod for uid in uids for pod in state.held_pods.controlled_by(uid)]
    return sorted(found, key=lambda pod: pod.metadata.name)


def _first(item: tuple[Key, ReplicaSet]) -> Key:
    return item[0]


def _prototype(
    state: State, workload: Workload, sets: Sequence[ReplicaSet], existing: list[Pod]
) -> Pod | None:
    """Return what a new replica will look like: like the newest there are, else as the template says."""
    newest = max(sets, key=lambda item: item.metadata.creation_timestamp or "", default=None)
    for pod in existing:
        owner = controller_of(pod.metadata)
        if newest is not None and owner is not None and owner.uid == newest.metadata.uid:
            # A live pod shows what admission adds to the template: priority, tolerations.
            return without_node(pod)
    if newest is not None:
        template = newest.spec.template
        return _made(newest.metadata, "ReplicaSet", template.metadata, template.spec)
    deployment = state.deployments.get((workload.namespace, workload.name))
    if workload.kind == "Deployment" and deployment is not None:
        template = deployment.spec.template
        return _made(deployment.metadata, "Deployment", template.metadata, template.spec)
    if workload.kind in _WITH_SETS or not existing:
        return None
    return without_node(
        max(existing, key=lambda pod: (pod.metadata.creation_timestamp or "", pod.metadata.name))
    )


def _made(owner: ObjectMeta, kind: str, metadata: ObjectMeta, spec: PodSpec) -> Pod:
    reference = OwnerReference(
        api_version="apps/v1", kind=kind, name=owner.name, uid=owner.uid, controller=True
    )
    return Pod(
        metadata=ObjectMeta(
            name=owner.name,
            namespace=owner.namespace,
            labels=metadata.labels,
            annotations=metadata.annotations,
            owner_references=(reference,),
        ),
        spec=with_host_ports(with_default_requests(spec)),
    )


def _numbered(pod: Pod, workload: Workload, number: int) -> Pod:
    name = virtual_pod_name(workload.name, number)
    pod = _without_own_claims(pod)
    return replace(pod, metadata=replace(pod.metadata, name=name, uid="", creation_timestamp=None))


def _without_own_claims(pod: Pod) -> Pod:
    """Return the pod without claims that were made for it alone: a new replica's are not there yet."""
    volumes = pod.spec.volumes or ()
    others = tuple(
        one
        for one in volumes
        if one.ephemeral is None
        and not (
            one.persistent_volume_claim is not None
            # So a StatefulSet names them.
            and one.persistent_volume_claim.claim_name == f"{one.name}-{pod.metadata.name}"
        )
    )
    return (
        pod if len(others) == len(volumes) else replace(pod, spec=replace(pod.spec, volumes=others or None))
    )
