"""What the process tells Prometheus: upstream's series by their own names, and a few of ours."""

from kubetide.runtime.series.caches import show_caches, show_skew
from kubetide.runtime.series.clients import ClientSeries
from kubetide.runtime.series.guards import show_dropped, show_holds
from kubetide.runtime.series.heard import Heard
from kubetide.runtime.series.leases import show_leases
from kubetide.runtime.series.loops import show_loops

__all__ = [
    "ClientSeries",
    "Heard",
    "show_caches",
    "show_dropped",
    "show_holds",
    "show_leases",
    "show_loops",
    "show_skew",
]
