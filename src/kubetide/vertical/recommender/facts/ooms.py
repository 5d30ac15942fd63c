"""Containers that ran out of memory, as pods and events report them.

Source: VPA 1.8, pkg/recommender/input/oom.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubetide.objects.cluster import Event
from kubetide.objects.pod import Container, ContainerStatus, ContainerTerminated, Pod
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.vertical.recommender.facts.views import Oom, time_of

OOM_KILLED = "OOMKilled"
EVICTED = "Evicted"
_CONTAINERS = "offending_containers"
_USAGE = "offending_containers_usage"
_RESOURCE = "starved_resource"


def ooms_of_update(old: Pod, new: Pod) -> Iterator[Oom]:
    """Yield the containers that a pod update shows as OOM-killed, in the order of its status.

    Upstream watches no pending pods: a pod that leaves this phase is new there, and no update.
    """
    if "Pending" in {old.status.phase, new.status.phase}:
        return
    before = {status.name: status for status in old.status.container_statuses or ()}
    for status in new.status.container_statuses or ():
        earlier = before.get(status.name)
        if earlier is None:
            continue
        ended = _killed_now(earlier, status)
        if ended is not None:
            found = _oom(new, status, ended)
        else:
            ended = _killed_between(earlier, status)
            found = None if ended is None else _oom(old, earlier, ended)
        if found is not None:
            yield found


def _killed_now(old: ContainerStatus, new: ContainerStatus) -> ContainerTerminated | None:
    ended = new.state and new.state.terminated
    if not ended or ended.reason != OOM_KILLED:
        return None
    was_ended = old.state is not None and old.state.terminated is not None
    return None if was_ended and new.restart_count <= old.restart_count else ended


def _killed_between(old: ContainerStatus, new: ContainerStatus) -> ContainerTerminated | None:
    ended = new.last_state and new.last_state.terminated
    if not ended or ended.reason != OOM_KILLED or new.restart_count <= old.restart_count:
        return None
    running = [one.state is not None and one.state.running is not None for one in (old, new)]
    return ended if all(running) else None


def _oom(pod: Pod, status: ContainerStatus, ended: ContainerTerminated) -> Oom | None:
    specs = {one.name: one for one in pod.spec.containers or ()}
    at = time_of(ended.finished_at)
    if status.name not in specs or at is None:
        return None
    spec = specs[status.name]
    limits = (status.resources and status.resources.limits) or spec.resources.limits or {}
    return Oom(
        pod.metadata.namespace,
        pod.metadata.name,
        status.name,
        at,
        _requested(spec, status),
        unlimited="memory" not in limits,
    )


def _requested(spec: Container, status: ContainerStatus) -> int:
    """Return the memory request in bytes; what the status says of resources counts even if it lacks requests."""
    requests = (status.resources or spec.resources).requests or {}
    try:
        return Quantity.parse(requests.get("memory", 0)).value()
    except QuantityError:
        return 0


def ooms_of_event(event: Event) -> Iterator[Oom]:
    """Yield the containers that a memory eviction names, with their usage.

    An event whose lists do not fit together, or with a value that cannot be read, is ignored.
    """
    about = event.involved_object
    if event.reason != EVICTED or about.kind != "Pod":
        return
    notes: Mapping[str, str] = event.metadata.annotations or {}
    if not all(name in notes for name in (_CONTAINERS, _USAGE, _RESOURCE)):
        return
    columns = [notes[name].split(",") for name in (_CONTAINERS, _USAGE, _RESOURCE)]
    at = time_of(event.metadata.creation_timestamp)
    if len({len(column) for column in columns}) != 1 or at is None:
        return
    for container, usage, resource in zip(*columns, strict=True):
        if resource != "memory":
            continue
        try:
            memory = Quantity.parse(usage).value()
        except QuantityError:
            continue
        yield Oom(about.namespace, about.name, container, at, memory)
