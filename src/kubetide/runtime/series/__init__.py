"""The series of the process: upstream's by their own names, and a few of ours."""

from kubetide.runtime.series.caches import show_caches, show_skew
from kubetide.runtime.series.clients import ClientSeries
from kubetide.runtime.series.guards import show_dropped, show_holds
from kubetide.runtime.series.leases import show_leases
from kubetide.runtime.series.listening import ListeningRecorder
from kubetide.runtime.series.loops import show_loops
from kubetide.runtime.series.process import show_process

__all__ = [
    "ClientSeries",
    "ListeningRecorder",
    "show_caches",
    "show_dropped",
    "show_holds",
    "show_leases",
    "show_loops",
    "show_process",
    "show_skew",
]
