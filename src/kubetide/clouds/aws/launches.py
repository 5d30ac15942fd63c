"""What Auto Scaling groups launch: the instance types behind configurations, templates and requirements.

Answers are remembered: those that never change for ever, the others for 20 minutes less a share that depends on
the name, so that not all are asked for at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from kubetide.acting.parallel import in_parallel
from kubetide.clouds.aws.api import AwsApi
from kubetide.clouds.aws.groups import Asg, LaunchTemplate
from kubetide.clouds.common.remembered import Remembered
from kubetide.objects.base import Json
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, minutes

_AT_ONCE: Final = 8
_LIFE: Final = minutes(20)
_EARLY: Final = (minutes(2), minutes(10))


class Launched(NamedTuple):
    """What one group launches.

    Attributes:
        types: Names of instance types, the one that stands first in the group's settings first.
        requirements: What the types were chosen by; empty where they are named.
        spot: Whether the launch template asks for spot instances.
        error: Why there are no types; empty when there are.
    """

    types: tuple[str, ...] = ()
    requirements: tuple[Json, ...] = ()
    spot: bool = False
    error: str = ""


class Launches:
    """Finds what groups launch, with few calls."""

    def __init__(self, api: AwsApi) -> None:
        self._api = api
        self._configurations: dict[str, Json] = {}
        self._templates = Remembered(_LIFE, _EARLY)
        self._chosen = Remembered(_LIFE, _EARLY)

    async def of(self, groups: Sequence[Asg], now: Instant) -> dict[str, Launched]:
        """Return what each of the groups launches, by name; a failure is that group's alone."""
        failure = await self._read_configurations(groups)

        async def one(group: Asg) -> Launched:
            try:
                return await self._of(group, now, failure)
            except CloudError as error:
                return Launched(error=f"could not find instance type for {group.name}: {error}")

        found = await in_parallel(groups, one, limit=_AT_ONCE)
        self._templates.sweep()
        self._chosen.sweep()
        return {group.name: launched for group, launched in zip(groups, found, strict=True)}

    async def _read_configurations(self, groups: Sequence[Asg]) -> str:
        names = {group.launch.configuration for group in groups if group.launch.configuration}
        # A launch configuration never changes.
        self._configurations = {name: held for name, held in self._configurations.items() if name in names}
        missing = names - self._configurations.keys()
        if not missing:
            return ""
        try:
            found = await self._api.launch_configurations(missing)
        except CloudError as error:
            return str(error)
        self._configurations.update({each.get("LaunchConfigurationName") or "": each for each in found})
        return ""

    async def _of(self, group: Asg, now: Instant, failure: str) -> Launched:
        launch, missing = group.launch, f"could not find instance type for {group.name}"
        if launch.configuration:
            held = self._configurations.get(launch.configuration) or {}
            kind = held.get("InstanceType")
            if not kind:
                why = failure or f"AWS knows no launch configuration {launch.configuration}"
                return Launched(error=f"{missing}: {why}")
            return Launched(types=(kind,), spot=bool(held.get("SpotPrice")))
        if launch.types and launch.requirements and len(launch.overrides) == 1:
            return Launched(
                error=f"node group {group.name}: an override has both an instance type and instance requirements; keep one"
            )
        if launch.types:
            return Launched(types=launch.types)
        if launch.template is None:
            return Launched(error=f"{missing}: the group has no launch template; give it one")
        version = f"version {launch.template.version} of launch template {launch.template.name}"
        data = await self._template(launch.template, now)
        if data is None:
            return Launched(error=f"{missing}: AWS knows no {version}")
        spot = (data.get("InstanceMarketOptions") or {}).get("MarketType") == "spot"
        requirements = launch.requirements
        if not requirements and data.get("InstanceType"):
            return Launched(types=(data["InstanceType"],), spot=spot)
        if not requirements and data.get("InstanceRequirements"):
            requirements = (data["InstanceRequirements"],)
        if not requirements:
            return Launched(
                error=f"{missing}: {version} has neither an instance type nor requirements; set one"
            )
        chosen: list[str] = []
        for each in requirements:
            chosen += await self._types_for(each, data.get("ImageId") or "", now)
        if not chosen:
            return Launched(error=f"{missing}: no instance type of the region meets its requirements")
        return Launched(tuple(dict.fromkeys(chosen)), requirements, spot)

    async def _template(self, template: LaunchTemplate, now: Instant) -> Json | None:
        # A version with a number never changes; $Latest and $Default do.
        found: Json | None = await self._templates.get(
            "\0".join(template),
            now,
            lambda: self._api.launch_template(*template),
            ever=template.version.isdigit(),
        )
        return found

    async def _types_for(self, requirements: Json, image: str, now: Instant) -> list[str]:
        async def ask() -> list[str]:
            described = await self._api.image(image) if image else None
            return await self._api.types_for(requirements, described)

        key = f"{image}\0{msgspec.json.encode(requirements, order='deterministic').decode()}"
        found: list[str] = await self._chosen.get(key, now, ask)
        return found
