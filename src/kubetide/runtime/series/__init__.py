"""What the process tells Prometheus: upstream's series by their own names, and a few of ours."""

from kubetide.runtime.series.caches import show_caches, show_skew
from kubetide.runtime.series.clients import ClientSeries
from kubetide.runtime.series.guards import show_dropped, show_holds, show_not_understood, show_sources
from kubetide.runtime.series.heard import Heard
from kubetide.runtime.series.horizontal import HorizontalSeries
from kubetide.runtime.series.leases import show_leases
from kubetide.runtime.series.nodes import NodesSeries

__all__ = [
    "ClientSeries",
    "Heard",
    "HorizontalSeries",
    "NodesSeries",
    "show_caches",
    "show_dropped",
    "show_holds",
    "show_leases",
    "show_not_understood",
    "show_skew",
    "show_sources",
]
