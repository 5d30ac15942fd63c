"""The new recommendations of a pass: those whose target differs from the last one."""

from __future__ import annotations

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.objects.base import Quantities
from kubetide.objects.vpa import ContainerRecommendation, VpaStatus
from kubetide.vertical.recommender.decision import Commands
from kubetide.vertical.recommender.reasons import VOCABULARY

_decoder = msgspec.json.Decoder(VpaStatus)


class NewTargets:
    """Remembers the last target of each container, so that unchanged ones are not recorded again."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], dict[str, Quantities]] = {}

    def of(self, commands: Commands, *, full: bool) -> tuple[tuple[Reason, ...], int]:
        """Return a reason per new target, and the number of recommendations left out; none left out if ``full``."""
        reasons: list[Reason] = []
        repeated = 0
        for write in (*commands.statuses, *commands.advice):
            status = _decoder.decode(write.status)
            containers = (status.recommendation and status.recommendation.container_recommendations) or ()
            key = write.namespace, write.name
            last = self._last.get(key, {})
            for one in containers:
                if full or last.get(one.container_name) != one.target:
                    reasons += _reasons("/".join((*key, one.container_name)), one)
                else:
                    repeated += 1
            self._last[key] = {one.container_name: one.target or {} for one in containers}
        return tuple(reasons), repeated


def _reasons(subject: str, one: ContainerRecommendation) -> list[Reason]:
    target, lower, upper = ((part or {}) for part in (one.target, one.lower_bound, one.upper_bound))
    return [
        VOCABULARY.reason(
            "Recommended",
            subject,
            resource=resource,
            target=str(amount),
            lower=str(lower.get(resource, "")),
            upper=str(upper.get(resource, "")),
        )
        for resource, amount in target.items()
    ]
