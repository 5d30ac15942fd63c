"""Where the capacity of a CapacityBuffer is, and why some of it is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kubetide.nodes.capacity.buffers.inject import BUFFERS
from kubetide.nodes.capacity.buffers.limiting import limits_of, quotas_unread
from kubetide.nodes.capacity.buffers.names import ACTIVE, LIMITED, READY
from kubetide.nodes.capacity.buffers.quotas import QuotaLimit
from kubetide.nodes.capacity.buffers.translate import is_managed
from kubetide.nodes.explain.waiting.verdict_text import group_lines
from kubetide.nodes.records.export import copy_state
from kubetide.nodes.registry.cluster_state import observe
from kubetide.nodes.scale_up.orchestrator import open_tick
from kubetide.nodes.scale_up.tick import Tick
from kubetide.nodes.state import State
from kubetide.nodes.templates.learning import learn
from kubetide.objects.capacity import CapacityBuffer, condition_of, is_true
from kubetide.objects.kinds import CAPACITY_BUFFERS
from kubetide.objects.meta import Key, controller_of, key_of
from kubetide.objects.pod import Pod
from kubetide.units.quantity import Quantity
from kubetide.units.time import Instant

NO_INJECTION: Final = "no capacity is reserved: --capacity-buffer-pod-injection-enabled is off"


class BufferCapacity(NamedTuple):
    """Where the placeholder pods of a buffer are.

    Attributes:
        placed: How many of them have capacity, by where that is.
        coming: How many of these are on nodes that are on their way.
        left: Those without capacity.
        why: Why nobody knows what the buffer asks for; empty where it is known.
        limited: What ResourceQuotas leave of the pods that it asks for; empty where they leave all.
    """

    placed: Mapping[str, int]
    coming: int
    left: tuple[Pod, ...]
    why: str
    limited: str = ""

    @property
    def there(self) -> int:
        """How many have capacity on nodes that are there."""
        return sum(self.placed.values()) - self.coming

    @property
    def missing(self) -> int:
        """How many have no capacity."""
        return len(self.left)


def explain_buffer(state: State, key: Key, now: Instant) -> list[str]:
    """Return the state of the buffer as lines. Raises KeyError for an unknown buffer."""
    buffer: CapacityBuffer = state.capacity.of(CAPACITY_BUFFERS)[key]
    settings = state.settings
    lines = []
    if not settings.capacity_buffer_controller_enabled:
        lines.append("its status is another program's: --capacity-buffer-controller-enabled is off")
    if not settings.capacity_buffer_pod_injection_enabled:
        lines.append(NO_INJECTION)
    lines += [
        f"{one.type}: {one.status}, {one.reason}: {one.message}".rstrip(": ")
        + f" ({one.last_transition_time})"
        for one in buffer.status.conditions or ()
    ]
    lines += _quota_lines(state, buffer)
    _, tick = _open(state, now)
    found = _capacities(tick, [buffer])[key]
    total = found.there + found.coming + found.missing
    if not total and not is_managed(buffer):
        strategy = buffer.spec.provisioning_strategy
        return [
            f"It waits: its provisioningStrategy {strategy} is not served here, only {ACTIVE} is.",
            *lines,
        ]
    coming = f", {found.coming} of them on nodes that are on their way" if found.coming else ""
    asked = "pods that ResourceQuotas leave it" if found.limited else "requested pods"
    lines.insert(
        0, found.why or f"{found.there + found.coming} of the {total} {asked} have capacity{coming}."
    )
    lines += [f"{where}: {count}" for where, count in sorted(found.placed.items())]
    return lines + missing_lines(state, found, now)


def missing_lines(state: State, found: BufferCapacity, now: Instant) -> list[str]:
    """Return what each group answers to the pods of a buffer that have no capacity."""
    if not found.left:
        return []
    copy, tick = _open(state, now)
    tick.demand.pods = list(found.left)
    return group_lines(copy, tick, now)


def _quota_lines(state: State, buffer: CapacityBuffer) -> list[str]:
    """Return why the buffer has no more pods, a line for each ResourceQuota that leaves no more; none if none limits it."""
    if not state.settings.capacity_buffer_controller_enabled:
        return []
    if quotas_unread(state):
        return [
            "ResourceQuotas cannot be read: a buffer that one has limited stays so, others are not limited"
        ]
    if not is_true(buffer.status.conditions, LIMITED):
        return []
    return [_quota_line(one) for one in limits_of(state, buffer) if one.pods <= (buffer.status.replicas or 0)]


def _quota_line(limit: QuotaLimit) -> str:
    quota, name = limit.quota, limit.resource
    hard, used = (quota.status.hard or {})[name], (quota.status.used or {}).get(name, 0)
    reserved = Quantity(limit.reserved, -9, Quantity.parse(hard).format)
    return (
        f"quota {quota.metadata.name} limits it to {limit.pods}: {name} {hard}, {used} used, "
        f"{reserved} reserved by older buffers"
    )


def capacity_of_buffers(state: State, now: Instant) -> dict[Key, BufferCapacity]:
    """Return where the capacity of each buffer is."""
    if not state.capacity.buffers:
        return {}
    _, tick = _open(state, now)
    return _capacities(tick, state.capacity.buffers)


def _open(state: State, now: Instant) -> tuple[State, Tick]:
    """Return a copy of the state and its tick, in which placeholder pods have their places."""
    copy = copy_state(state)
    tick = open_tick(copy, observe(copy, now), now)
    learn(copy, now)
    return copy, tick


def _capacities(tick: Tick, buffers: Iterable[CapacityBuffer]) -> dict[Key, BufferCapacity]:
    """Return where the capacity of each buffer is; each pod of the tick is looked at once."""
    placed: dict[str, Counter[str]] = {}
    coming: Counter[str] = Counter()
    left: dict[str, list[Pod]] = {}
    for pod, node in tick.demand.placed:
        if uid := _buffer_of(tick, pod):
            upcoming = tick.upcoming_nodes.get(node)
            coming[uid] += upcoming is not None
            where = f"node {node}" if upcoming is None else f"nodes of group {upcoming} that are on their way"
            placed.setdefault(uid, Counter())[where] += 1
    for pod in tick.demand.pods:
        if uid := _buffer_of(tick, pod):
            left.setdefault(uid, []).append(pod)
    return {
        key_of(one): BufferCapacity(
            placed.get(uid := one.metadata.uid, {}),
            coming[uid],
            tuple(left.get(uid, ())),
            _not_ready(one),
            _limited(one),
        )
        for one in buffers
    }


def _not_ready(buffer: CapacityBuffer) -> str:
    """Return why nobody knows what the buffer asks for; empty where it is known."""
    ready = condition_of(buffer.status.conditions, READY)
    if ready is None or ready.status != "False":
        return ""
    return f"No capacity is reserved: {ready.message or ready.reason}."


def _limited(buffer: CapacityBuffer) -> str:
    """Return what ResourceQuotas leave of the buffer's pods; empty where they leave all, or it is not ready."""
    limited = condition_of(buffer.status.conditions, LIMITED)
    if limited is None or limited.status != "True" or _not_ready(buffer):
        return ""
    return limited.message or limited.reason


def _buffer_of(tick: Tick, pod: Pod) -> str:
    """Return the uid of the buffer whose placeholder a pod is; empty for any other pod."""
    if tick.demand.virtual.get(key_of(pod)) != BUFFERS:
        return ""
    owner = controller_of(pod.metadata)
    return "" if owner is None else owner.uid
