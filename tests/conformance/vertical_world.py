"""The parts that updater and admission cases share: the objects of a case, as the cores see them."""

from __future__ import annotations

from typing import Any

import msgspec
from tests.conformance.cases import Case

from kubetide.objects.batch import CronJob, Job
from kubetide.objects.limit_range import LimitRange
from kubetide.objects.statefulset import StatefulSet
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, ReplicationController
from kubetide.vertical.workloads import WorkloadKey, WorkloadView, view_of

_MODELS: dict[str, Any] = {
    "CronJob": CronJob,
    "DaemonSet": DaemonSet,
    "Deployment": Deployment,
    "Job": Job,
    "ReplicaSet": ReplicaSet,
    "ReplicationController": ReplicationController,
    "StatefulSet": StatefulSet,
}


def workloads_of(case: Case) -> dict[WorkloadKey, WorkloadView]:
    views = [
        view_of(body["kind"], msgspec.convert(body, _MODELS[body["kind"]]))
        for body in case.get("controllers") or ()
        if body["kind"] in _MODELS
    ]
    return {view.key: view for view in views}


def vpas_of(case: Case) -> list[VerticalPodAutoscaler]:
    return [msgspec.convert(body, VerticalPodAutoscaler) for body in case.get("vpas") or ()]


def limit_ranges_of(case: Case) -> dict[str, tuple[LimitRange, ...]]:
    found: dict[str, tuple[LimitRange, ...]] = {}
    for body in case.get("limitRanges") or ():
        one = msgspec.convert(body, LimitRange)
        found[one.metadata.namespace] = (*found.get(one.metadata.namespace, ()), one)
    return found
