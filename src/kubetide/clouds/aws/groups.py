"""An Auto Scaling group as the API describes it: sizes, instances, tags, and what it launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from kubetide.clouds.aws.ids import provider_id
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.pagination import each_once
from kubetide.objects.base import Json

TERMINATING: Final = frozenset(
    {"Terminating", "Terminating:Wait", "Terminating:Proceed", "Terminating:Retained", "Terminated"}
)
"""Lifecycle states of an instance that is on its way out."""

_WARM: Final = "Warmed:"
_DEFAULT_VERSION: Final = "$Default"


class LaunchTemplate(NamedTuple):
    """Which version of which launch template; ``key`` says whether ``name`` is a name or an id."""

    key: str
    name: str
    version: str


class Override(NamedTuple):
    """One line of a mixed instances policy: a type or requirements, and its weight where it has one."""

    instance_type: str
    requirements: Json | None
    weight: str


class Launch(NamedTuple):
    """What a group launches.

    Attributes:
        configuration: Name of a launch configuration, or empty.
        template: The launch template, None without one.
        mixed: Whether the group has a mixed instances policy.
        overrides: The policy's lines.
        distribution: The policy's InstancesDistribution.
    """

    configuration: str = ""
    template: LaunchTemplate | None = None
    mixed: bool = False
    overrides: tuple[Override, ...] = ()
    distribution: Json | None = None

    @property
    def types(self) -> tuple[str, ...]:
        """Types that the policy names, in its order, each once."""
        return tuple(dict.fromkeys(line.instance_type for line in self.overrides if line.instance_type))

    @property
    def requirements(self) -> tuple[Json, ...]:
        """Requirements that the policy's lines hold."""
        return tuple(line.requirements for line in self.overrides if line.requirements is not None)


class Member(NamedTuple):
    """An instance of a group."""

    provider_id: str
    name: str
    lifecycle: str

    @property
    def is_terminating(self) -> bool:
        """Whether it is on its way out, or gone."""
        return self.lifecycle in TERMINATING


class Asg(NamedTuple):
    """An Auto Scaling group.

    Attributes:
        warm: How many machines its warm pool has, which are no nodes.
        suspended: Its processes that are suspended, each with the reason that AWS gives.
    """

    name: str
    min_size: int
    max_size: int
    desired: int
    zones: tuple[str, ...]
    members: tuple[Member, ...]
    tags: tuple[tuple[str, str], ...]
    launch: Launch
    warm: int = 0
    suspended: Mapping[str, str] = MappingProxyType({})


def read_group(raw: Json) -> Asg:
    """Return one group of DescribeAutoScalingGroups."""
    instances = raw.get("Instances") or ()
    found = [
        Member(
            provider_id(each.get("AvailabilityZone") or "", each.get("InstanceId") or ""),
            each.get("InstanceId") or "",
            each.get("LifecycleState") or "",
        )
        for each in instances
        if not (each.get("LifecycleState") or "").startswith(_WARM)
    ]
    members = tuple(each_once(found, lambda one: one.name))
    return Asg(
        name=raw["AutoScalingGroupName"],
        min_size=raw.get("MinSize") or 0,
        max_size=raw.get("MaxSize") or 0,
        # A size that is not said is not 0: an increase of that would end the machines that there are.
        desired=len(members) if raw.get("DesiredCapacity") is None else raw["DesiredCapacity"],
        zones=tuple(raw.get("AvailabilityZones") or ()),
        members=members,
        tags=tuple((tag.get("Key") or "", tag.get("Value") or "") for tag in raw.get("Tags") or ()),
        launch=_launch(raw),
        warm=raw.get("WarmPoolSize") or len(instances) - len(found),
        suspended=_suspended(raw.get("SuspendedProcesses") or ()),
    )


def _suspended(processes: Sequence[Json]) -> Mapping[str, str]:
    return MappingProxyType(
        {
            str(one.get("ProcessName") or ""): str(one.get("SuspensionReason") or "no reason is given")
            for one in processes
        }
    )


def doubts_of(group: Asg, spec: NodeSpec | None) -> list[str]:
    """Return what about a group's own settings does not go with an autoscaler; ``spec`` is that of ``--nodes``."""
    doubts = []
    if group.min_size > group.max_size:
        doubts.append(f"minimum size {group.min_size} is above maximum size {group.max_size}; set it below")
    elif spec is not None and spec.max_size > group.max_size:
        doubts.append(
            f"AWS refuses to grow it above its own maximum size {group.max_size}, which is below the "
            f"{spec.max_size} of --nodes; raise it, or lower that of --nodes"
        )
    if spec is not None and spec.min_size < group.min_size <= group.max_size:
        doubts.append(
            f"AWS refuses to end nodes below its own minimum size {group.min_size}, which is above the "
            f"{spec.min_size} of --nodes; lower it, or raise that of --nodes"
        )
    if "Launch" in group.suspended:
        why = group.suspended["Launch"]
        doubts.append(f"its process Launch is suspended ({why}), so no machine comes; resume it")
    if any(line.weight not in {"", "1"} for line in group.launch.overrides):
        doubts.append(
            "its overrides have weights, so its desired capacity does not count nodes; remove the weights"
        )
    return doubts


def _launch(raw: Json) -> Launch:
    if raw.get("LaunchConfigurationName"):
        return Launch(configuration=raw["LaunchConfigurationName"])
    if raw.get("LaunchTemplate"):
        return Launch(template=_template(raw["LaunchTemplate"]))
    policy = raw.get("MixedInstancesPolicy")
    if not policy:
        return Launch()
    template = policy.get("LaunchTemplate") or {}
    overrides = template.get("Overrides") or ()
    return Launch(
        template=_template(template.get("LaunchTemplateSpecification")),
        mixed=True,
        overrides=tuple(
            Override(
                line.get("InstanceType") or "",
                line.get("InstanceRequirements"),
                line.get("WeightedCapacity") or "",
            )
            for line in overrides
        ),
        distribution=policy.get("InstancesDistribution"),
    )


def _template(spec: Json | None) -> LaunchTemplate | None:
    if not spec:
        return None
    key = "LaunchTemplateName" if spec.get("LaunchTemplateName") else "LaunchTemplateId"
    name = spec.get(key) or ""
    return LaunchTemplate(key, name, spec.get("Version") or _DEFAULT_VERSION) if name else None
