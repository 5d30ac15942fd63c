"""The interface of a score plugin, and shared normalisations."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import msgspec
import numpy as np

from kubetide.ports.errors import KubetideError
from kubetide.scheduling.pods.pod_class import PodClass
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.selectors import Selector
from kubetide.units.vectors import Int64Vector

MOST = 100
"""The highest normalised score."""


class ScoreError(KubetideError):
    """A plugin cannot score a pod, which fails the pod and not a node; the text is kube-scheduler's."""

    def __init__(self, plugin: str, detail: str) -> None:
        super().__init__(f'running PreScore plugin "{plugin}": {detail}')


class Incoming(NamedTuple):
    """A pod to place.

    Attributes:
        pod_class: What filters and most scorers read of it.
        spread: Selector of the pods that the system spreads it from; None for none.
        images: Names of its images, one a container and volume, normalised.
        containers: How many containers it has, init containers included.
    """

    pod_class: PodClass
    spread: Selector | None = None
    images: tuple[str, ...] = ()
    containers: int = 1


class Scored(msgspec.Struct, frozen=True, eq=False):
    """A plugin's scores of each feasible node: the raw score, and the one from 0 to 100."""

    raw: Int64Vector
    normalized: Int64Vector

    @classmethod
    def as_they_are(cls, raw: Int64Vector) -> Scored:
        """Return scores that are already from 0 to 100."""
        return cls(raw, raw)


class Scorer(Protocol):
    """Scores the feasible nodes of a pod by one rule. A pure function of its arguments."""

    @property
    def name(self) -> str:
        """Upstream's name of the plugin."""
        ...

    def differs(self, pod: Incoming, cluster: ScoredSnapshot) -> bool:
        """Return whether nodes may differ in their scores; if not, the plugin cannot change the choice."""
        ...

    def score(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Scored | None:
        """Return the score of each feasible row, or None if the plugin skips the pod.

        Args:
            pod: What is to be placed.
            cluster: Nodes and the pods on them; not changed.
            feasible: Rows, in any order.

        Raises: ScoreError when the pod cannot be scored.
        """
        ...


def scaled(raw: Int64Vector, *, reverse: bool = False) -> Scored:
    """Return scores with 100 x raw / largest, truncated, or 100 minus that; with a largest of 0 all are 0, or 100.

    Source: kube-scheduler v1.36 DefaultNormalizeScore.
    """
    largest = int(raw.max(initial=0))
    if largest == 0:
        return Scored(raw, np.full(len(raw), MOST if reverse else 0, np.int64))
    scores: Int64Vector = raw * MOST // largest
    return Scored(raw, MOST - scores if reverse else scores)
