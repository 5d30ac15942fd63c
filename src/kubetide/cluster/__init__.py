"""The Cluster port over HTTP: a real API server, or the embedded one on its socket."""

from __future__ import annotations

from kubetide.cluster.access.connection import ConfigError, Connection, ExecPlugin, Impersonation, PemFiles
from kubetide.cluster.access.find import find_connection
from kubetide.cluster.access.incluster import in_cluster
from kubetide.cluster.access.kubeconfig import KubeconfigError, load_kubeconfig, read_kubeconfigs
from kubetide.cluster.http import HttpCluster, is_protobuf_installed
from kubetide.cluster.metric_ports.metrics import HttpCustomMetrics, HttpExternalMetrics, plurals_of
from kubetide.cluster.metric_ports.usage import HttpMetrics

__all__ = [
    "ConfigError",
    "Connection",
    "ExecPlugin",
    "HttpCluster",
    "HttpCustomMetrics",
    "HttpExternalMetrics",
    "HttpMetrics",
    "Impersonation",
    "KubeconfigError",
    "PemFiles",
    "find_connection",
    "in_cluster",
    "is_protobuf_installed",
    "load_kubeconfig",
    "plurals_of",
    "read_kubeconfigs",
]
