"""The Cluster port over HTTP: a real API server, or the embedded one on its socket."""

from __future__ import annotations

from kubetide.cluster.config import Connection, KubeconfigError, load_kubeconfig
from kubetide.cluster.http import HttpCluster

__all__ = ["Connection", "HttpCluster", "KubeconfigError", "load_kubeconfig"]
