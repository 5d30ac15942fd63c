"""The MetricSource port: what pods use, as columns.

A source that speaks an API decodes it to these columns; a source in the same process fills them
directly. The numbers must be the same: values in milli-units, rounded up as upstream's
``MilliValue`` rounds them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Int64Vector = NDArray[np.int64]
BoolVector = NDArray[np.bool_]


@dataclass(frozen=True)
class ResourceUsage:
    """Usage of one resource by container: ``milli`` int64 and ``present`` bool, both (containers,)."""

    milli: Int64Vector
    present: BoolVector


@dataclass(frozen=True)
class PodSamples:
    """One answer of the resource metrics API.

    Shapes: pods P, containers C. The containers of pod i are ``first[i]:first[i + 1]``.

    Attributes:
        namespaces: (P,) and ``names`` (P,): which pods; a pod may occur twice, the last one holds.
            A source gives the *same* tuple objects again while the set and order of pods is
            unchanged, so that a reader may keep its row numbers.
        timestamp_ns: (P,) int64 wall time of the sample; year 1 when the source has none.
        window_ns: (P,) int64 length of the sampling window.
        first: (P + 1,) int64 offsets into the container axis.
        containers: (C,) container names.
        usage: by resource name (``cpu``, ``memory``).
    """

    namespaces: Sequence[str]
    names: Sequence[str]
    timestamp_ns: Int64Vector
    window_ns: Int64Vector
    first: Int64Vector
    containers: Sequence[str]
    usage: Mapping[str, ResourceUsage]


class MetricSource(Protocol):
    """Where usage comes from."""

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        """Gives samples of all pods, of one namespace or (empty) of all, that match the selector.

        Raises MetricsError with the text that conditions and events quote.
        """
        ...
