"""Pods that a controller has yet to create: demand ahead of the pods (``--enable-proactive-scaleup``).

Source: Cluster Autoscaler, pod injection and its limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from kubetide.nodes.facts.pods import consumes_request, is_unschedulable, without_node
from kubetide.nodes.scale_down.pods import is_expendable
from kubetide.nodes.settings import Settings
from kubetide.nodes.state import State
from kubetide.objects.batch import Job
from kubetide.objects.pod import Pod

INJECTED = "proactive"


def injected_pods(state: State) -> list[Pod]:
    """Return copies of each controller's newest pod, as many as it has yet to create, in order of controller.

    A controller without a pod gets none: nothing says what its pods will look like.
    """
    if not state.settings.enable_proactive_scaleup:
        return []
    found: list[Pod] = []
    for uid, desired in sorted(_desired(state)):
        pods = [pod for pod in state.held_pods.controlled_by(uid) if _is_counted(pod, state.settings)]
        missing = desired - len(pods)
        if not pods or missing <= 0:
            continue
        sample = max(pods, key=_recency)
        if _may_buy(state, sample):
            found += [_copy(sample, uid, number) for number in range(1, missing + 1)]
    return found


def within_limit(state: State, pods: Sequence[Pod], injected: Iterable[tuple[str, str]]) -> list[Pod]:
    """Return the pods without the first injected ones that exceed ``--pod-injection-limit``.

    Args:
        pods: All that want a place.
        injected: Namespace and name of those that were injected.
    """
    over = len(pods) - state.settings.pod_injection_limit
    if over <= 0:
        return list(pods)
    names = dict.fromkeys(injected)
    left: list[Pod] = []
    for pod in pods:
        if over > 0 and (pod.metadata.namespace, pod.metadata.name) in names:
            over -= 1
        else:
            left.append(pod)
    return left


def _is_counted(pod: Pod, settings: Settings) -> bool:
    """Return whether the pod has a node, asks for one, or is gated.

    As upstream, a pod that the scheduler has not looked at yet does not count: a copy is injected in its place.
    """
    return bool(pod.spec.node_name or pod.spec.scheduling_gates) or is_unschedulable(pod, settings)


def _recency(pod: Pod) -> tuple[str, bool, bool]:
    """Return a key that is largest for the newest pod; of equally new ones for a bound one, and least for a gated one."""
    return pod.metadata.creation_timestamp or "", bool(pod.spec.node_name), not pod.spec.scheduling_gates


def _may_buy(state: State, pod: Pod) -> bool:
    """Return whether nodes may be bought for the pod, and so for others like it."""
    settings = state.settings
    if settings.enable_provisioning_requests and consumes_request(pod):
        return False
    return not is_expendable(pod, settings.expendable_pods_priority_cutoff)


def _desired(state: State) -> Iterator[tuple[str, int]]:
    for replica_set in state.replica_sets.values():
        yield replica_set.metadata.uid, _one_if_none(replica_set.spec.replicas)
    for stateful_set in state.stateful_sets.values():
        # Others make one pod after another has become ready: the next ones are not needed yet.
        if stateful_set.spec.pod_management_policy == "Parallel":
            yield stateful_set.metadata.uid, _one_if_none(stateful_set.spec.replicas)
    for job in state.jobs.values():
        yield job.metadata.uid, _desired_by_job(job)


def _desired_by_job(job: Job) -> int:
    at_once, done = job.spec.parallelism, job.status.succeeded
    if job.spec.completions is None and at_once is not None and not done:
        return at_once
    # Without completions one pod that succeeds ends the Job: no more are made then.
    return min(_one_if_none(at_once), _one_if_none(job.spec.completions) - done)


def _one_if_none(replicas: int | None) -> int:
    return 1 if replicas is None else replicas


def _copy(pod: Pod, owner_uid: str, number: int) -> Pod:
    if pod.spec.node_name:
        pod = without_node(pod)
    name = f"{pod.metadata.name}-copy-{number}"
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"{owner_uid}-{number}"))
