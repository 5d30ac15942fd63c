"""Autoscalers of Compute Engine, which change the sizes of managed groups by themselves.

GKE's cluster autoscaler does not use them.

Source: Compute Engine, Autoscaler and AutoscalingPolicy of compute/v1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import field

from kubetide.clouds.common.entries import Entries
from kubetide.clouds.common.scaling_policies import by_group
from kubetide.clouds.gce.references import GceRef, Scope, group_id, parse_manager_url
from kubetide.objects.base import ApiStruct
from kubetide.units.lists import listed

_MOST_SCHEDULES = 3


class ScalingSchedule(ApiStruct):
    disabled: bool = False


class AutoscalingPolicy(ApiStruct):
    """``mode`` is ON, ONLY_SCALE_OUT, its old name ONLY_UP, or OFF. Schedules, too, do nothing when it is off."""

    mode: str = "ON"
    scaling_schedules: dict[str, ScalingSchedule] | None = None


class Autoscaler(ApiStruct):
    """The API's Autoscaler, as far as the provider reads it; ``target`` is the URL of the group's manager."""

    name: str = ""
    target: str = ""
    status: str = ""
    autoscaling_policy: AutoscalingPolicy = field(default_factory=AutoscalingPolicy)

    @property
    def is_on(self) -> bool:
        """Whether it changes the size of its group, or soon will."""
        return self.status != "DELETING" and self.autoscaling_policy.mode != "OFF"

    @property
    def summary(self) -> str:
        """What it is, in a few words: ``autoscaler web (mode ON, schedule nights)``."""
        schedules = self.autoscaling_policy.scaling_schedules or {}
        names = sorted(name for name, one in schedules.items() if not one.disabled)
        noun = "schedule" if len(names) == 1 else "schedules"
        planned = f", {noun} {listed(names, _MOST_SCHEDULES)}" if names else ""
        return f"autoscaler {self.name} (mode {self.autoscaling_policy.mode}{planned})"


def scaling_policies(
    autoscalers: Mapping[Scope, Entries[Autoscaler]], groups: Collection[GceRef]
) -> dict[str, tuple[str, ...]]:
    """Return the autoscalers that change the sizes of groups, by the groups' ids.

    Args:
        autoscalers: Those of each zone and region.
        groups: The provider's groups; autoscalers of others are left out.

    Raises:
        CloudError: Where none is found, and one cannot be read.
    """
    found = (
        (parse_manager_url(one.target, scope.project), one)
        for scope, entries in autoscalers.items()
        for one in entries.found
    )
    return by_group(
        ((group_id(ref), one.summary) for ref, one in found if ref in groups and one.is_on),
        (problem for entries in autoscalers.values() for problem in entries.problems.values()),
    )
