"""What a new node of an Auto Scaling group looks like, and by which ways it may come.

Source: cluster-autoscaler (Aug 2026), AWS provider, node template. Two things differ on purpose: a group with
several instance types promises the least that all of them have, and a local zone is in its parent's region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kubetide.clouds.aws.groups import Asg
from kubetide.clouds.aws.ids import region_of
from kubetide.clouds.aws.instance_types import InstanceType
from kubetide.clouds.aws.launches import Launched
from kubetide.clouds.aws.nodegroups import Managed
from kubetide.clouds.aws.tags import Tags
from kubetide.clouds.common.template import (
    DEFAULT_PODS,
    generic_labels,
    kube_proxy,
    least_quantities,
    template_node,
)
from kubetide.objects.base import Json, Quantities
from kubetide.ports.cloud import NVIDIA_GPU, Market, NodeTemplate, Offering

EBS_ZONE: Final = "topology.ebs.csi.aws.com/zone"
_MIB: Final = 1 << 20


class Made(NamedTuple):
    """A template or why there is none, and what is doubtful about it."""

    template: NodeTemplate | None
    error: str = ""
    warnings: tuple[str, ...] = ()
    types: tuple[InstanceType, ...] = ()


def make_template(
    group: Asg, launched: Launched, types: Mapping[str, InstanceType], tags: Tags, managed: Managed
) -> Made:
    """Return the template of a group.

    Args:
        group: The group.
        launched: What it launches.
        types: All instance types by name.
        tags: What the group's tags say.
        managed: What EKS says; its labels win over those of tags.
    """
    if not group.zones:
        return Made(None, f'unable to get first AvailabilityZone for ASG "{group.name}"; give it a subnet')
    if launched.error:
        return Made(None, launched.error)
    first = types.get(launched.types[0])
    if first is None:
        return Made(None, f'ASG "{group.name}" uses the unknown EC2 instance type "{launched.types[0]}"')
    known = tuple(types[name] for name in launched.types if name in types)
    warnings = [
        f"instance type {name} is not known; the template does not count with it"
        for name in launched.types
        if name not in types
    ]
    if len({each.arch for each in known}) > 1 and not launched.requirements:
        warnings.append(f"instance types of different architectures; the template says {first.arch}")
    amounts = _amounts(first, known, launched.requirements)
    capacity: Quantities = {
        **{name: str(amount) for name, amount in amounts.items()},
        **tags.resources,
        **managed.resources,
    }
    node = template_node(
        group.name,
        labels={**_labels(group, first), **tags.labels, **managed.labels},
        taints=(*tags.taints, *managed.taints),
        capacity=capacity,
        provider_id="",
    )
    template = NodeTemplate(node=node, pods=(kube_proxy(group.name),), source=_source(first, known, launched))
    return Made(template, "", (*warnings, *managed.warnings), known)


def _amounts(
    first: InstanceType, known: Sequence[InstanceType], requirements: Sequence[Json]
) -> dict[str, int]:
    if not requirements:
        return least_quantities(_capacity(each) for each in known)
    # Whatever type comes, it has what the requirements ask for at least; of the rest the first type speaks.
    return least_quantities(_capacity(first) | _required(each) for each in requirements)


def _capacity(kind: InstanceType) -> dict[str, int]:
    return {
        "pods": DEFAULT_PODS,
        "cpu": kind.vcpu,
        "memory": kind.memory_bytes,
        NVIDIA_GPU: kind.gpus,
    }


def _required(requirements: Json) -> dict[str, int]:
    least: dict[str, int] = {}
    cores = (requirements.get("VCpuCount") or {}).get("Min")
    memory = (requirements.get("MemoryMiB") or {}).get("Min")
    gpus = (requirements.get("AcceleratorCount") or {}).get("Min")
    if cores is not None:
        least["cpu"] = cores
    if memory is not None:
        least["memory"] = memory * _MIB
    if (
        gpus is not None
        and "nvidia" in (requirements.get("AcceleratorManufacturers") or ())
        and "gpu" in (requirements.get("AcceleratorTypes") or ())
    ):
        least[NVIDIA_GPU] = gpus
    return least


def _labels(group: Asg, kind: InstanceType) -> dict[str, str]:
    zone = group.zones[0]
    generic = generic_labels(arch=kind.arch, instance_type=kind.name, region=region_of(zone), zone=zone)
    return {**generic, EBS_ZONE: zone}


def _source(first: InstanceType, known: Sequence[InstanceType], launched: Launched) -> str:
    if launched.requirements:
        return f"instance requirements of the group, {len(known)} instance types, first {first.name} ({first.source})"
    if len(known) > 1:
        return f"the least of {len(known)} instance types, first {first.name} ({first.source})"
    return f"instance type {first.name} ({first.source}), without what the system reserves"


def offerings(
    group: Asg,
    launched: Launched,
    types: Sequence[InstanceType],
    spot_prices: Mapping[tuple[str, str], float],
) -> tuple[Offering, ...]:
    """Return the ways by which the group's next node may come, on-demand before spot.

    A share is known where the group leaves AWS no choice of type: it spreads over its zones evenly. ``spot_prices``
    are by type and zone.
    """
    ways: list[Offering] = []
    for market, part in markets(group, launched):
        share = part / len(group.zones) if len(types) == 1 and group.zones else None
        ways += [
            Offering(
                instance_type=kind.name,
                zone=zone,
                market=market,
                share=share,
                price_per_hour=kind.price_per_hour
                if market == "on-demand"
                else spot_prices.get((kind.name, zone)),
            )
            for kind in types
            for zone in group.zones
        ]
    return tuple(ways)


def markets(group: Asg, launched: Launched) -> tuple[tuple[Market, float], ...]:
    """Return each market that the next node may come from, and how likely."""
    if not group.launch.mixed or group.launch.distribution is None:
        return (("spot", 1.0),) if launched.spot else (("on-demand", 1.0),)
    base = group.launch.distribution.get("OnDemandBaseCapacity") or 0
    percent = group.launch.distribution.get("OnDemandPercentageAboveBaseCapacity")
    part = 1.0 if percent is None or group.desired < base else percent / 100
    markets: tuple[tuple[Market, float], ...] = (("on-demand", part), ("spot", 1.0 - part))
    return tuple(each for each in markets if each[1] > 0)
