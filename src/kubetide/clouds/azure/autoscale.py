"""Autoscale settings of Azure Monitor, which change the sizes of scale sets by themselves.

The cluster autoscaler of AKS does not use them. Repairs of a set replace machines and leave its size as it is.

Source: Azure Monitor, AutoscaleSettingResource of api-version 2022-10-01.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import field

from kubetide.clouds.common.entries import Entries
from kubetide.clouds.common.scaling_policies import by_group
from kubetide.objects.base import ApiStruct, Json
from kubetide.units.lists import listed

_MOST_PROFILES = 3


class ScaleCapacity(ApiStruct):
    """Bounds of a set's size; Azure writes them as text."""

    minimum: str
    maximum: str


class AutoscaleProfile(ApiStruct):
    """How large a set may be at a time, and the rules by which it grows and shrinks."""

    capacity: ScaleCapacity
    rules: tuple[Json, ...] | None = None

    @property
    def effect(self) -> str:
        """What it does to the size of a set, in a few words."""
        least, most = self.capacity.minimum, self.capacity.maximum
        if self.rules:
            return "rules"
        return f"fixed size {least}" if least == most else f"size {least} to {most}"


class SettingProperties(ApiStruct):
    enabled: bool = False
    target_resource_uri: str = ""
    profiles: tuple[AutoscaleProfile, ...] | None = None


class AutoscaleSetting(ApiStruct):
    """The API's AutoscaleSettingResource, as far as the provider reads it."""

    name: str = ""
    properties: SettingProperties = field(default_factory=SettingProperties)

    @property
    def is_on(self) -> bool:
        """Whether it sets the size of its target; a profile without rules does that, too."""
        return self.properties.enabled and bool(self.properties.profiles)

    @property
    def summary(self) -> str:
        """What it is, in a few words: ``autoscale setting web (rules, fixed size 3)``."""
        effects = list(dict.fromkeys(one.effect for one in self.properties.profiles or ()))
        return f"autoscale setting {self.name} ({listed(effects, _MOST_PROFILES)})"


def scaling_policies(
    settings: Entries[AutoscaleSetting], groups: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """Return the autoscale settings that change the sizes of sets, by group.

    Args:
        settings: Those of the resource group.
        groups: The provider's groups by the resource ids of their sets, which are compared without case.

    Raises:
        CloudError: Where none is found, and one cannot be read.
    """
    by_target = {resource_id.lower(): group for resource_id, group in groups.items()}
    on = ((one.properties.target_resource_uri.lower(), one) for one in settings.found if one.is_on)
    return by_group(
        ((by_target[target], one.summary) for target, one in on if target in by_target),
        settings.problems.values(),
    )
