"""What Prometheus is asked: facts by their labels, and numbers over time.

Each question takes the maximum over all labels that it does not name, so that a series that is scraped twice (two
kube-state-metrics, two Prometheus behind one query front end) counts once.

Source: kube-state-metrics 2.18, docs/metrics; cAdvisor's container_cpu_usage_seconds_total.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kubetide.clouds.labels.config import WELL_KNOWN
from kubetide.units.time import Duration

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
ZONE: Final = "topology.kubernetes.io/zone"


def label_name(label: str) -> str:
    """Return what kube-state-metrics calls a label of Kubernetes: what Prometheus does not take is an underscore."""
    return "label_" + "".join(sign if sign.isascii() and sign.isalnum() else "_" for sign in label)


NODE_LABELS: Final = {label_name(one): one for one in (*WELL_KNOWN, INSTANCE_TYPE, ZONE)}
"""Labels of nodes that are asked for, by their names in Prometheus; there if --metric-labels-allowlist names them."""


class Fact(NamedTuple):
    """Something that holds for a while.

    Attributes:
        metric: With matchers.
        labels: Which distinguish the series.
        over: What of the values within a time counts.
    """

    metric: str
    labels: tuple[str, ...]
    over: str = "last"

    def at_once(self) -> str:
        """Return the question for one time."""
        return f"max by ({', '.join(self.labels)}) ({self.metric})"

    def within(self, length: Duration) -> str:
        """Return the question for all that there was within a length before a time."""
        return f"max by ({', '.join(self.labels)}) ({self.over}_over_time({self.metric}[{promql(length)}]))"


_POD = ("namespace", "pod")
_RESOURCE = (*_POD, "container", "resource")
_HPA = ("namespace", "horizontalpodautoscaler")

FACTS: Final = {
    "pod owner": Fact(
        'kube_pod_owner{owner_is_controller!="false"}', (*_POD, "owner_kind", "owner_name"), "last"
    ),
    "replica set owner": Fact(
        "kube_replicaset_owner", ("namespace", "replicaset", "owner_kind", "owner_name")
    ),
    "pod created": Fact("kube_pod_created", _POD),
    "pod started": Fact("kube_pod_start_time", _POD),
    "pod ready": Fact("kube_pod_status_ready_time", _POD, "min"),
    "pod node": Fact('kube_pod_info{node!=""}', (*_POD, "node")),
    "container": Fact("kube_pod_container_info", (*_POD, "container", "image")),
    "requests": Fact("kube_pod_container_resource_requests", _RESOURCE),
    "limits": Fact("kube_pod_container_resource_limits", _RESOURCE),
    "node created": Fact("kube_node_created", ("node",)),
    "node labels": Fact("kube_node_labels", ("node", *NODE_LABELS)),
    "node capacity": Fact("kube_node_status_capacity", ("node", "resource")),
    "node allocatable": Fact("kube_node_status_allocatable", ("node", "resource")),
    "node taint": Fact("kube_node_spec_taint", ("node", "key", "value", "effect")),
    "hpa": Fact(
        "kube_horizontalpodautoscaler_info",
        (*_HPA, "scaletargetref_api_version", "scaletargetref_kind", "scaletargetref_name"),
    ),
    "hpa minimum": Fact("kube_horizontalpodautoscaler_spec_min_replicas", _HPA),
    "hpa maximum": Fact("kube_horizontalpodautoscaler_spec_max_replicas", _HPA),
    "hpa target": Fact(
        "kube_horizontalpodautoscaler_spec_target_metric", (*_HPA, "metric_name", "metric_target_type")
    ),
    "budget": Fact("kube_poddisruptionbudget_created", ("namespace", "poddisruptionbudget")),
}
"""By name."""

CPU: Final = 'container_cpu_usage_seconds_total{container!="", container!="POD"}'
NODES: Final = "max by (node) (kube_node_created)"
ORDERS: Final = "sum(cluster_autoscaler_scaled_up_nodes_total)"
"""Exposed by Cluster Autoscaler, and by kubetide under the same name."""

WORKLOADS: Final = {
    "Deployment": ("deployment", "kube_deployment_spec_replicas", "kube_deployment_status_replicas_ready"),
    "StatefulSet": ("statefulset", "kube_statefulset_replicas", "kube_statefulset_status_replicas_ready"),
}
"""By kind: the label that names one, the series of what it asks for, and that of its pods that are ready."""


def promql(length: Duration) -> str:
    """Return a duration in PromQL."""
    return f"{max(length // 1_000_000, 1)}ms"


def usage(window: Duration) -> str:
    """Return the question for the CPU of each pod, in cores, that was Ready in the middle of the window."""
    rate = f"max by (namespace, pod, container) (rate({CPU}[{promql(window)}]))"
    ready = f'kube_pod_status_ready{{condition="true"}} offset {promql(Duration(window // 2))} == 1'
    return f"sum by (namespace, pod) ({rate}) and on (namespace, pod) ({ready})"


def replicas(kind: str) -> str:
    """Return the question for what the workloads of a kind ask for."""
    label, asked, _ = WORKLOADS[kind]
    return f"max by (namespace, {label}) ({asked})"


def ready(kind: str, window: Duration) -> str:
    """Return the question for the pods of the workloads of a kind that were Ready in the middle of the window."""
    label, _, there = WORKLOADS[kind]
    return f"max by (namespace, {label}) ({there} offset {promql(Duration(window // 2))})"
