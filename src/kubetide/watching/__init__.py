"""Caches of the cluster's objects, by list and watch over the Cluster port."""

from kubetide.watching.caches import Caches
from kubetide.watching.holds import holds_of
from kubetide.watching.informer import Informer
from kubetide.watching.reflector import Relist
from kubetide.watching.store import Feed, Store

__all__ = ["Caches", "Feed", "Informer", "Relist", "Store", "holds_of"]
