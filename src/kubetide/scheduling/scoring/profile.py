"""Profiles: which plugins score, with which weights."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import numpy as np

from kubetide.scheduling.scoring.base import Incoming, Scored, Scorer
from kubetide.scheduling.scoring.registry import SCORERS
from kubetide.scheduling.scoring.snapshot import ScoredSnapshot
from kubetide.units.vectors import Int64Vector

DEFAULT = "default"


class Profile(msgspec.Struct, frozen=True):
    """Score plugins in execution order, with their weights."""

    name: str
    plugins: tuple[tuple[Scorer, int], ...]

    def total(self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector) -> Int64Vector:
        """Return the weighted sum of those scores in which the feasible rows may differ.

        Raises: ScoreError when a plugin cannot score the pod.
        """
        total = np.zeros(len(feasible), np.int64)
        for plugin, weight in self.plugins:
            if plugin.differs(pod, cluster):
                scored = plugin.score(pod, cluster, feasible)
                if scored is not None:
                    total += weight * scored.normalized
        return total

    def scores(
        self, pod: Incoming, cluster: ScoredSnapshot, feasible: Int64Vector
    ) -> dict[str, Scored | None]:
        """Return each plugin's scores, None if it skips the pod. Raises as ``total`` does."""
        return {plugin.name: plugin.score(pod, cluster, feasible) for plugin, _ in self.plugins}


PROFILES: Mapping[str, Profile] = {name: Profile(name, plugins) for name, plugins in SCORERS.items()}
"""By the name that a scenario writes."""


def profile_of(name: str) -> Profile:
    """Return the profile of that name. Raises ValueError that lists the known names."""
    found = PROFILES.get(name)
    if found is None:
        raise ValueError(f"{name!r} is no profile of the scheduler, there are: {', '.join(PROFILES)}")
    return found
