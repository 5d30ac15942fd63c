"""A Kubernetes API in memory: a versioned store, REST semantics, and the Cluster port over them."""

from kubetide.embedded.apiserver.store.client import EmbeddedCluster, Faults
from kubetide.embedded.apiserver.store.request import Options, Request, Response
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.embedded.apiserver.store.store import Store

__all__ = ["EmbeddedCluster", "Faults", "Options", "Request", "Response", "Rest", "Store"]
