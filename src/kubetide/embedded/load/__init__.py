"""Services under load: from requests to CPU, memory, queue and latency, and the metrics of it."""

from kubetide.embedded.load.custom import EmbeddedCustomMetrics
from kubetide.embedded.load.external import EmbeddedExternalMetrics, ExternalSeries
from kubetide.embedded.load.metrics import EmbeddedMetrics
from kubetide.embedded.load.model import DEFAULT_STEP, LoadModel, ServiceLoad, Usage
from kubetide.embedded.load.service import LoadError, Needs, Service, ServiceResources, ServiceStep
from kubetide.embedded.load.trace_files import read_trace
from kubetide.embedded.load.traces import Burst, ConstantTrace, DailyTrace, SeriesTrace, Trace, TraceError

__all__ = [
    "DEFAULT_STEP",
    "Burst",
    "ConstantTrace",
    "DailyTrace",
    "EmbeddedCustomMetrics",
    "EmbeddedExternalMetrics",
    "EmbeddedMetrics",
    "ExternalSeries",
    "LoadError",
    "LoadModel",
    "Needs",
    "SeriesTrace",
    "Service",
    "ServiceLoad",
    "ServiceResources",
    "ServiceStep",
    "Trace",
    "TraceError",
    "Usage",
    "read_trace",
]
