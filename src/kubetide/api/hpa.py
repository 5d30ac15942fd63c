"""One HPA, evaluated from manifests and numbers, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
import numpy as np

from kubetide.api.inputs import InputError, Objects, read_objects
from kubetide.horizontal.explain.answers import HpaExplanation, explain
from kubetide.horizontal.facts.samples import answer_of
from kubetide.horizontal.facts.values import Reply
from kubetide.horizontal.facts.views import HpaView, ScaleView, view_of_hpa, view_of_pod
from kubetide.horizontal.metrics.types import Metric
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta, State
from kubetide.loop import loop_entry, parse_flags
from kubetide.objects.base import Json
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.kinds import HPAS, PODS
from kubetide.objects.meta import LabelSelector
from kubetide.objects.pod import Pod
from kubetide.ports.metrics import PodSamples, ResourceUsage
from kubetide.units.quantity import Quantity, QuantityError
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant, before, format_rfc3339, hours, parse_rfc3339, seconds

Usage = Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""Of every pod ``{"cpu": "180m"}``, of each by name ``{"web-0": {"cpu": "180m"}}``, or one of the former a pod."""

_LARGEST = (1 << 63) - 1
_SOME_TIME = parse_rfc3339("2026-01-01T00:00:00Z")


class UsageError(InputError):
    """Measured values that are unreadable or match no pod or metric; the text names the value."""


def decide_hpa(
    objects: Objects,
    usage: Usage = (),
    *,
    name: str = "",
    replicas: int | None = None,
    values: Mapping[str, Any] | None = None,
    at: datetime | None = None,
    flags: Mapping[str, str | int | float | bool] | None = None,
) -> HpaExplanation:
    """Return the desired replicas of an HPA, with every intermediate number.

    The decision is that of the HPA controller (v1.36) at its first look: nothing is remembered from before. Of the
    answer, ``desired`` is the number, ``current`` what there is, and ``lines()`` says why.

    Args:
        objects: The HPA, its workload, and its pods; without pods they are made of the workload's template, ready for an hour.
        usage: What the pods use: the same for each, one entry a pod, or by name. Where a metric asks for a container, it is
            that container which uses it.
        name: Of the HPA, ``NAMESPACE/NAME`` where namespaces matter; needed where there are several.
        replicas: What the workload asks for; else what its spec says.
        values: Of external, object and pod metrics, by their name; that of a pod metric is what each pod has.
        at: The time of the decision; it matters to samples and windows only, and may be left out.
        flags: Of kube-controller-manager, such as ``{"horizontal-pod-autoscaler-tolerance": 0.2}``.

    Raises: InputError for objects, UsageError for values, FlagError for flags that cannot be read.
    """
    there = read_objects(objects)
    json = _chosen([one for kind, one in there if kind is HPAS], name)
    view = view_of_hpa(msgspec.convert(json, HorizontalPodAutoscaler))
    view = msgspec.structs.replace(view, namespace=view.namespace or "default")
    workload = _workload(view, [one for _, one in there])
    now = _SOME_TIME if at is None else Instant(int(at.timestamp() * 1e9))
    desired = workload.get("spec", {}).get("replicas", 1) if replicas is None else replicas
    selector = Selector.from_object(msgspec.convert(workload["spec"].get("selector") or {}, LabelSelector))
    pods = _selected(view.namespace, selector, [one for kind, one in there if kind is PODS])
    pods = pods or _pods_of(workload, desired, now)
    state = State(parse_flags(dict(flags or {}), [loop_entry("horizontal")]).of(Settings))
    scale = ScaleView(view.namespace, view.name, desired, len(pods), selector=str(selector))
    state.apply(Delta(hpas=[view], scales=[scale], pods=[view_of_pod(pod) for pod in pods]))
    key = view.namespace, view.name
    metrics = state.specs[key].metrics
    keys = sorted(
        {metric.sample_key for metric in metrics if metric.type in ("Resource", "ContainerResource")}
    )
    state.apply(
        Delta(
            answers=[
                answer_of(_samples(pods, usage, _container_of(metrics), now), keys, hpa=None, same_pods=False)
            ],
            values=_replies(metrics, scale.selector, pods, values or {}, now),
        )
    )
    return explain(state, key, now)


def _chosen(hpas: Sequence[Json], name: str) -> Json:
    named = {
        f"{one['metadata'].get('namespace') or 'default'}/{one['metadata']['name']}": one for one in hpas
    }
    full_name = name if "/" in name or not name else f"default/{name}"
    if full_name in named:
        return named[full_name]
    if not name and len(named) == 1:
        return next(iter(named.values()))
    there = ", ".join(named) or "none"
    raise InputError(f"which HPA? {f'{name} is not among them; ' if name else ''}the objects have: {there}")


def _workload(view: HpaView, objects: Sequence[Json]) -> Json:
    target = view.spec.scale_target_ref
    for one in objects:
        metadata = one["metadata"]
        if (one["kind"], metadata.get("name"), metadata.get("namespace") or "default") == (
            target.kind,
            target.name,
            view.namespace,
        ):
            return one
    raise InputError(
        f"HPA {view.namespace}/{view.name}: its target, {target.kind} {target.name}, is not among the objects; add it"
    )


def _selected(namespace: str, selector: Selector, objects: Sequence[Json]) -> list[Pod]:
    """Return the pods of the namespace that the workload selects; objects may be of several workloads."""
    pods = [msgspec.convert(_with_namespace(one), Pod) for one in objects]
    return [
        pod for pod in pods if pod.metadata.namespace == namespace and selector.matches(pod.metadata.labels)
    ]


def _with_namespace(json: Json) -> Json:
    metadata = json["metadata"]
    return {**json, "metadata": {**metadata, "namespace": metadata.get("namespace") or "default"}}


def _pods_of(workload: Json, replicas: int, now: Instant) -> list[Pod]:
    """Return pods of a workload's template that have been ready for an hour."""
    metadata, template = workload["metadata"], workload["spec"].get("template") or {}
    long_ago = format_rfc3339(before(now, hours(1)))
    return [
        msgspec.convert(
            {
                "metadata": {
                    **(template.get("metadata") or {}),
                    "name": f"{metadata['name']}-{number}",
                    "namespace": metadata.get("namespace") or "default",
                },
                "spec": template.get("spec") or {"containers": []},
                "status": {
                    "phase": "Running",
                    "startTime": long_ago,
                    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": long_ago}],
                },
            },
            Pod,
        )
        for number in range(replicas)
    ]


def _container_of(metrics: Sequence[Metric]) -> str:
    """Return the container that a metric asks for; empty where none does."""
    return next((metric.container for metric in metrics if metric.container), "")


def _samples(pods: Sequence[Pod], usage: Usage, container: str, now: Instant) -> PodSamples:
    """Return what each pod uses as one sample of this container; pods without an entry have none."""
    used = [(pod, one) for pod, one in zip(pods, _by_pod(pods, usage), strict=True) if one is not None]
    resources = sorted({resource for _, one in used for resource in one})
    return PodSamples(
        namespaces=tuple(pod.metadata.namespace for pod, _ in used),
        names=tuple(pod.metadata.name for pod, _ in used),
        timestamp_ns=np.full(len(used), now - seconds(5), np.int64),
        window_ns=np.full(len(used), seconds(30), np.int64),
        first=np.arange(len(used) + 1, dtype=np.int64),
        containers=(container,) * len(used),
        usage={
            resource: ResourceUsage(
                np.array([_milli(one.get(resource, 0), resource) for _, one in used], np.int64),
                np.array([resource in one for _, one in used], np.bool_),
            )
            for resource in resources
        },
    )


def _by_pod(pods: Sequence[Pod], usage: Usage) -> list[Mapping[str, Any] | None]:
    if not isinstance(usage, Mapping):
        if usage and len(usage) != len(pods):
            raise UsageError(
                f"usage has {len(usage)} entries and there are {len(pods)} pods; give one for each"
            )
        return list(usage) or [None] * len(pods)
    named = {name for name, one in usage.items() if isinstance(one, Mapping)}
    if not named:
        return [usage or None] * len(pods)
    unknown = sorted(named - {pod.metadata.name for pod in pods}) or sorted(set(usage) - named)
    if unknown:
        there = ", ".join(pod.metadata.name for pod in pods)
        raise UsageError(f"usage of {unknown[0]}: there is no such pod; there are {there or 'none'}")
    return [usage.get(pod.metadata.name) for pod in pods]


def _replies(
    metrics: Sequence[Metric], selector: str, pods: Sequence[Pod], values: Mapping[str, Any], now: Instant
) -> list[Reply]:
    """Return the answers that the values stand for; of a pod metric every pod has the same."""
    asked = [
        (metric.name, question) for metric in metrics if (question := metric.question(selector)) is not None
    ]
    names = {name for name, _ in asked}
    unknown = sorted(set(values) - names)
    if unknown:
        raise UsageError(
            f"values of {unknown[0]}: the HPA has no such metric; it has {', '.join(sorted(names)) or 'none of this kind'}"
        )
    replies = []
    for name, question in asked:
        if name not in values:
            continue
        of_pods = [pod.metadata.name for pod in pods] if question.source == "pods" else []
        number = len(of_pods) if question.source == "pods" else 1
        milli = np.full(number, _milli(values[name], name), np.int64)
        replies.append(Reply(question, pods=tuple(of_pods), milli=milli, measured=now))
    return replies


def _milli(value: object, what: str) -> int:
    try:
        found = Quantity.parse(value if isinstance(value, str | int) else str(value)).exact_milli()
    except QuantityError as error:
        raise UsageError(f"{what}: {value!r} is not a quantity such as 180m, 0.5 or 2Gi") from error
    if abs(found) > _LARGEST:
        raise UsageError(f"{what}: {value!r} is more than 64 bits of thousandths hold")
    return found
