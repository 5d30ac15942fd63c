"""The series of a run as kube-state-metrics and cAdvisor would export them, from the run's records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from kubetide.horizontal.core import HorizontalCore
from kubetide.nodes.core import decode_delta
from kubetide.objects.meta import controller_of
from kubetide.runtime.recording.records import read_records
from kubetide.units.quantity import milli
from kubetide.units.time import parse_rfc3339

Sample = tuple[str, tuple[tuple[str, str], ...], float, float]
"""(metric, labels, Unix seconds, value)"""

_ALLOWED = ("node.kubernetes.io/instance-type", "topology.kubernetes.io/zone")


def open_metrics(folder: Path, twice: bool = False, **left_out: tuple[float, float]) -> str:
    """Return the series of a run, sampled at each of its ticks.

    Args:
        twice: Whether two kube-state-metrics and two scrapers of cAdvisor export everything.
        left_out: Names of metrics, and between which times (seconds of the run) they were not scraped.
    """
    samples = sorted(set(_samples(folder)), key=lambda one: one[:3])
    first = min(at for _, _, at, _ in samples)
    lines = []
    for metric, found in groupby(samples, key=lambda one: one[0]):
        lines.append(
            f"# TYPE {metric.removesuffix('_total')} {'counter' if metric.endswith('_total') else 'gauge'}"
        )
        low, high = left_out.get(metric, left_out.get("everything", (0, 0)))
        there = [one for one in found if not low <= one[2] - first < high]
        for instance in ("a", "b") if twice else ("a",):
            for _, labels, at, value in there:
                shown = ",".join(f'{name}="{text}"' for name, text in (*labels, ("instance", instance)))
                lines.append(f"{metric}{{{shown}}} {value!r} {at}")
    return "\n".join([*lines, "# EOF", ""])


def _samples(folder: Path) -> Iterator[Sample]:
    nodes, pods, sets, deployments = {}, {}, {}, {}
    for record in read_records(folder, "nodes"):
        delta = decode_delta(bytes(record.state))
        for there, changed, deleted in (
            (nodes, delta.nodes, delta.gone.nodes),
            (pods, delta.pods, delta.gone.pods),
            (sets, delta.replica_sets, delta.gone.replica_sets),
            (deployments, delta.deployments, delta.gone.deployments),
        ):
            there.update({_key(item): item for item in changed})
            for key in deleted:
                there.pop(("", key) if isinstance(key, str) else tuple(key), None)
        if record.phase == 0:
            at = record.now / 1e9
            for metric, labels, value in _objects(nodes, pods, sets, deployments):
                yield metric, tuple(labels.items()), at, value
    yield from _usage(folder)


def _key(item):
    return item.metadata.namespace, item.metadata.name


def _objects(nodes, pods, sets, deployments):
    for (_, name), node in nodes.items():
        where = {"node": name}
        yield "kube_node_created", where, parse_rfc3339(node.metadata.creation_timestamp) / 1e9
        labels = {
            "label_" + "".join(sign if sign.isalnum() else "_" for sign in key): value
            for key, value in (node.metadata.labels or {}).items()
            if key in _ALLOWED
        }
        yield "kube_node_labels", where | labels, 1
        for metric, amounts in (("capacity", node.status.capacity), ("allocatable", node.status.allocatable)):
            yield from _amounts(f"kube_node_status_{metric}", where, amounts)
    for (namespace, name), item in deployments.items():
        where = {"namespace": namespace, "deployment": name}
        yield "kube_deployment_spec_replicas", where, item.spec.replicas
    for (namespace, name), item in sets.items():
        owner = controller_of(item.metadata)
        where = {"namespace": namespace, "replicaset": name}
        yield "kube_replicaset_owner", where | {"owner_kind": owner.kind, "owner_name": owner.name}, 1
    for (namespace, name), pod in pods.items():
        yield from _pod({"namespace": namespace, "pod": name}, pod)


def _pod(where, pod):
    owner = controller_of(pod.metadata)
    kind, name = (owner.kind, owner.name) if owner else ("", "")
    controls = {"owner_kind": kind, "owner_name": name, "owner_is_controller": "true" if owner else ""}
    yield "kube_pod_owner", where | controls, 1
    yield "kube_pod_created", where, parse_rfc3339(pod.metadata.creation_timestamp) / 1e9
    yield "kube_pod_info", where | {"node": pod.spec.node_name or ""}, 1
    for container in pod.spec.containers:
        inside = where | {"container": container.name}
        yield "kube_pod_container_info", inside | {"image": container.image}, 1
        yield from _amounts("kube_pod_container_resource_requests", inside, container.resources.requests)
        yield from _amounts("kube_pod_container_resource_limits", inside, container.resources.limits)


def _amounts(metric, where, amounts):
    for resource, amount in (amounts or {}).items():
        name = resource.replace(".", "_").replace("/", "_").replace("-", "_")
        yield metric, where | {"resource": name, "unit": "core"}, milli(str(amount)) / 1000


def _usage(folder: Path) -> Iterator[Sample]:
    """Yield HPAs, and counters of CPU time that grow by what each pod used between two ticks."""
    core = HorizontalCore()
    total: dict[tuple[str, str], float] = {}
    before = None
    for record in read_records(folder, "horizontal"):
        if record.full:
            core = HorizontalCore()
        core.apply(bytes(record.state), full=record.full)
        state, at = core.state, record.now / 1e9
        for key, view in state.views.items():
            where = (("namespace", key[0]), ("horizontalpodautoscaler", key[1]))
            target = view.spec.scale_target_ref
            kinds = (("scaletargetref_kind", target.kind), ("scaletargetref_name", target.name))
            yield "kube_horizontalpodautoscaler_info", (*where, *kinds), at, 1
            yield "kube_horizontalpodautoscaler_spec_min_replicas", where, at, view.spec.min_replicas
            yield "kube_horizontalpodautoscaler_spec_max_replicas", where, at, view.spec.max_replicas
            [metric] = view.spec.metrics
            of = (("metric_name", "cpu"), ("metric_target_type", "utilization"))
            goal = metric.resource.target.average_utilization
            yield "kube_horizontalpodautoscaler_spec_target_metric", (*where, *of), at, goal
            rows = state.table.members_of(key).tolist()
            whose = (("namespace", key[0]), ("deployment", target.name))
            ready = sum(state.table.view(row).ready == "True" for row in rows)
            yield "kube_deployment_status_replicas_ready", whose, at, ready
            for row in rows:
                pod = state.table.view(row)
                name = pod.namespace, pod.name
                where = (("namespace", name[0]), ("pod", name[1]))
                yield "kube_pod_status_ready", (*where, ("condition", "true")), at, int(pod.ready == "True")
                if pod.started:
                    yield "kube_pod_start_time", where, at, pod.started // 10**9
                if pod.ready == "True":
                    yield "kube_pod_status_ready_time", where, at, pod.ready_since // 10**9
                used = next(
                    (
                        float(column[row]) / 1000
                        for (resource, _), column in state.samples.milli.items()
                        if resource == "cpu" and state.samples.has[resource, _][row]
                    ),
                    0.0,
                )
                total[name] = total.get(name, 0.0) + used * (0.0 if before is None else at - before)
                inside = (*where, ("container", "main"))
                yield "container_cpu_usage_seconds_total", inside, at, total[name]
        before = at
