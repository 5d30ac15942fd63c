"""Objects of a pass, reduced to the fields that decide."""

from __future__ import annotations

import msgspec
import numpy as np

from kubetide.objects.pod import Container, Pod
from kubetide.objects.vpa import (
    CheckpointStatus,
    ResourcePolicy,
    VerticalPodAutoscaler,
    VerticalPodAutoscalerCheckpoint,
    VpaStatus,
)
from kubetide.ports.metrics import PodSamples
from kubetide.units.quantity import QuantityError, milli, whole
from kubetide.units.time import Instant, TimeFormatError, parse_rfc3339
from kubetide.units.vectors import Int64Vector
from kubetide.vertical.recommender.facts.hpas import LeftResource
from kubetide.vertical.targets import Target


class VpaView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A VPA without its status.

    Attributes:
        workload: The one that its targetRef names, ``KIND/NAMESPACE/NAME``; empty without a targetRef.
        target: What came of reading its targetRef.
        left: Resources that HPAs of the same target scale on.
        advised: Whether it stands in for a workload without a VPA object: nothing is written of it.
    """

    namespace: str
    name: str
    target: Target = Target()
    generation: int = 0
    recommenders: tuple[str, ...] = ()
    policy: ResourcePolicy | None = None
    mode: str = ""
    integer_cpu: tuple[str, ...] = ()
    left: tuple[LeftResource, ...] = ()
    advised: bool = False
    workload: str = ""


class StatusView(msgspec.Struct, frozen=True):
    """A VPA's status as it is stored."""

    namespace: str
    name: str
    status: VpaStatus


class Requested(msgspec.Struct, frozen=True, array_like=True):
    """A container's requests in millicores and bytes, and its CPU limit; 0 for none."""

    cpu: int
    memory: int
    cpu_limit: int


class PodView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod; ``init`` are the names of its init containers, which are not tracked.

    ``resources`` are known only where they play a part (``Settings.needs_requests``).
    """

    namespace: str
    name: str
    labels: dict[str, str] = {}
    phase: str = ""
    containers: tuple[str, ...] = ()
    init: tuple[str, ...] = ()
    resources: dict[str, Requested] = {}


class Oom(msgspec.Struct, frozen=True, omit_defaults=True):
    """A container ran out of memory, or its pod was evicted for memory; ``memory`` is its request or usage, bytes.

    ``unlimited`` is whether it was killed without a memory limit: then what it asked for proves nothing of its need.
    """

    namespace: str
    pod: str
    container: str
    at: Instant
    memory: int
    unlimited: bool = False


class CheckpointView(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored checkpoint; ``status`` is None if only its existence matters."""

    namespace: str
    name: str
    vpa: str
    container: str = ""
    status: CheckpointStatus | None = None


class Samples(msgspec.Struct, frozen=True):
    """One answer of the resource metrics API.

    Attributes:
        namespaces, names: (P,) of the pods.
        times: (P,) ns.
        first: (P + 1,) the containers of pod i are ``first[i]:first[i + 1]``.
        containers: (C,) names.
        cpu, memory: (C,) millicores and bytes; 0 where the answer lacks the resource, as upstream counts it.
    """

    namespaces: tuple[str, ...]
    names: tuple[str, ...]
    times: Int64Vector
    first: Int64Vector
    containers: tuple[str, ...]
    cpu: Int64Vector
    memory: Int64Vector


class Usage(msgspec.Struct, frozen=True, eq=False):
    """The usage of a container: (2, samples) times in ns and millicores or bytes, each in order of time."""

    cpu: Int64Vector
    memory: Int64Vector


class History(msgspec.Struct, frozen=True, omit_defaults=True):
    """The past usage of a pod's containers; ``labels`` are its last ones."""

    namespace: str
    pod: str
    labels: dict[str, str] = {}
    containers: dict[str, Usage] = {}


_INTEGER_CPU = ("vpa-post-processor.kubernetes.io/", "_integerCPU")


def vpa_view(
    vpa: VerticalPodAutoscaler, target: Target, left: tuple[LeftResource, ...] = (), *, advised: bool = False
) -> VpaView:
    """Return the part of a VPA that the recommender reads."""
    spec, meta = vpa.spec, vpa.metadata
    prefix, suffix = _INTEGER_CPU
    ref = spec.target_ref
    return VpaView(
        namespace=meta.namespace,
        name=meta.name,
        target=target,
        generation=meta.generation,
        left=left,
        advised=advised,
        workload="" if ref is None else f"{ref.kind}/{meta.namespace}/{ref.name}",
        recommenders=tuple(one.name for one in spec.recommenders or ()),
        policy=spec.resource_policy,
        mode=(spec.update_policy and spec.update_policy.update_mode) or "",
        integer_cpu=tuple(
            sorted(
                name[len(prefix) : -len(suffix)]
                for name, value in (meta.annotations or {}).items()
                if name.startswith(prefix) and name.endswith(suffix) and value == "true"
            )
        ),
    )


def pod_view(pod: Pod, *, resources: bool = False) -> PodView:
    """Return the part of a pod that the recommender reads."""
    return PodView(
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        labels=pod.metadata.labels or {},
        phase=pod.status.phase,
        containers=tuple(one.name for one in pod.spec.containers or ()),
        init=tuple(one.name for one in pod.spec.init_containers or ()),
        resources={one.name: _requested(one) for one in pod.spec.containers or ()} if resources else {},
    )


def _requested(container: Container) -> Requested:
    requests, limits = container.resources.requests or {}, container.resources.limits or {}
    try:
        return Requested(
            milli(requests.get("cpu", 0)), whole(requests.get("memory", 0)), milli(limits.get("cpu", 0))
        )
    except QuantityError:
        return Requested(0, 0, 0)


def checkpoint_view(checkpoint: VerticalPodAutoscalerCheckpoint) -> CheckpointView:
    """Return a checkpoint with all of its content."""
    meta, spec = checkpoint.metadata, checkpoint.spec
    return CheckpointView(
        meta.namespace, meta.name, spec.vpa_object_name, spec.container_name, checkpoint.status
    )


def samples_view(samples: PodSamples) -> Samples:
    """Return an answer of the metrics port in millicores and bytes, rounded up as upstream rounds them."""
    count = len(samples.containers)
    cpu, memory = samples.usage.get("cpu"), samples.usage.get("memory")
    none = np.zeros(count, np.int64)
    return Samples(
        namespaces=tuple(samples.namespaces),
        names=tuple(samples.names),
        times=samples.timestamp_ns,
        first=samples.first,
        containers=tuple(samples.containers),
        cpu=none if cpu is None else np.where(cpu.present, cpu.milli, 0),
        memory=none if memory is None else np.where(memory.present, -(-memory.milli // 1000), 0),
    )


def time_of(text: str | None) -> Instant | None:
    """Return a time of an object; None if it has none that can be read."""
    if text is None:
        return None
    try:
        found = parse_rfc3339(text)
    except TimeFormatError:
        return None
    return found if -(1 << 63) < found < 1 << 63 else None
