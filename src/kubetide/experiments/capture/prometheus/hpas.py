"""HPAs from kube-state-metrics: bounds, targets, and what of them no series shows."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.experiments.capture.prometheus.reading import Facts, Seen
from kubetide.horizontal.facts.views import HpaView
from kubetide.objects.hpa import (
    CrossVersionObjectReference,
    HpaSpec,
    MetricSpec,
    MetricTarget,
    ResourceMetricSource,
)
from kubetide.objects.meta import Key
from kubetide.units.quantity import bytes_to_text, milli_to_text

_RESOURCES = ("cpu", "memory")


def hpas_of(facts: Mapping[str, Facts], notes: list[str]) -> dict[Key, HpaView]:
    """Return the HPAs as they were first; one without a metric that is known is left out."""
    targets: dict[Key, list[tuple[str, str, Seen]]] = {}
    for (namespace, name, metric, kind), seen in sorted(facts["hpa target"].items()):
        targets.setdefault((namespace, name), []).append((metric, kind, seen))
    found: dict[Key, HpaView] = {}
    for namespace, name, version, kind, target in facts["hpa"]:
        key = namespace, name
        title = f"HPA {namespace}/{name}"
        most = facts["hpa maximum"].get(key)
        metrics = [
            _metric(metric, how, seen.first)
            for metric, how, seen in targets.get(key, ())
            if metric in _RESOURCES and how in ("utilization", "average")
        ]
        lost = sorted({one[0] for one in targets.get(key, ())} - set(_RESOURCES))
        if lost:
            notes.append(
                f"{title}: no series tells where its metrics {', '.join(lost)} come from; they are left out."
            )
        if most is None or not metrics:
            what = "maximum" if most is None else "CPU or memory target"
            notes.append(
                f"{title}: no series tells its {what}: it is left out, and its target keeps its replicas."
            )
            continue
        if any(_changed(facts[part].get(key)) for part in ("hpa minimum", "hpa maximum")) or any(
            _changed(seen) for _, _, seen in targets[key]
        ):
            notes.append(
                f"{title}: its bounds or targets were changed: the scenario has it as it was at first."
            )
        least = facts["hpa minimum"].get(key)
        spec = HpaSpec(
            scale_target_ref=CrossVersionObjectReference(
                api_version=version or "apps/v1", kind=kind, name=target
            ),
            min_replicas=None if least is None else round(least.first),
            max_replicas=round(most.first),
            metrics=tuple(metrics),
        )
        found[key] = HpaView(namespace, name, "", spec)
    if found:
        notes.append(
            "HPAs: no series tells their behaviour and annotations; the scenario has the defaults. A target of one container "
            "counts as one of the whole pod."
        )
    return found


def _metric(metric: str, how: str, value: float) -> MetricSpec:
    if how == "utilization":
        target = MetricTarget(type="Utilization", average_utilization=round(value))
    else:
        text = milli_to_text(round(value * 1000)) if metric == "cpu" else bytes_to_text(round(value))
        target = MetricTarget(type="AverageValue", average_value=text)
    return MetricSpec(type="Resource", resource=ResourceMetricSource(name=metric, target=target))


def _changed(seen: Seen | None) -> bool:
    return seen is not None and seen.first != seen.last
