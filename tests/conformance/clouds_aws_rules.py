"""Where the AWS provider differs from upstream on purpose: the inputs, and what is expected of ours instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tests.conformance.clouds_aws_world import instance_types

from kubetide.clouds.common.template import readable_quantities

LABEL = "k8s.io/cluster-autoscaler/node-template/label/"
RESOURCE = "k8s.io/cluster-autoscaler/node-template/resources/"
_LOCAL_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-[0-9]+)[a-z]?-.+")
_EFFECTS = {
    "NO_SCHEDULE": "NoSchedule",
    "NO_EXECUTE": "NoExecute",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
}


class Rule(NamedTuple):
    name: str
    reason: str


LEAST_OF_TYPES = Rule(
    "least of all types",
    "a group of several types promises the least that all of them have; upstream counts with the first",
)
LEAST_OF_REQUIREMENTS = Rule(
    "least of requirements",
    "a launch template with requirements promises their minimum in a plain group too; upstream only in a mixed one",
)
PARENT_REGION = Rule("parent region", "nodes of a local zone are labelled with its parent's region")
TAINT_WITHOUT_VALUE = Rule(
    "taint without value", "a node of EKS has a taint whose value is null; upstream loses it"
)
CREATING = Rule("placeholders are being created", "a machine that AWS owes does not run yet")
OPEN_ORDERS = Rule(
    "withdrawal of open orders", "what AWS owes can be withdrawn; upstream counts it as existing"
)
ONLY_THESE = Rule(
    "only the named placeholders", "other machines that AWS owes stay requested; upstream drops all"
)
NEVER_BELOW = Rule("never below the minimum", "a batch may not pass the minimum; upstream checks it once")
ENDED_ONCE = Rule("ended once", "an instance that we ended is not ended again before the next refresh")
BAD_GROUP_ALONE = Rule(
    "a bad group alone",
    "one group with a minimum above its maximum, or with types and requirements at once, does not stop the others",
)

RULES = (
    LEAST_OF_TYPES,
    LEAST_OF_REQUIREMENTS,
    PARENT_REGION,
    TAINT_WITHOUT_VALUE,
    CREATING,
    OPEN_ORDERS,
    ONLY_THESE,
    NEVER_BELOW,
    ENDED_ONCE,
    BAD_GROUP_ALONE,
)


def expected_template(
    world: Mapping[str, Any], group: Mapping[str, Any], recorded: dict[str, Any]
) -> dict[str, Any]:
    """Return what ours says where upstream said ``recorded``."""
    labels = dict(recorded["labels"])
    tags = {tag["Key"]: tag.get("Value", "") for tag in group.get("Tags") or ()}
    region = "topology.kubernetes.io/region"
    local = _LOCAL_ZONE.fullmatch(group["AvailabilityZones"][0])
    if local and not any(LABEL + region in key for key in tags):
        labels[region] = local[1]
    taints = sorted([*recorded["taints"], *_lost_taints(world, labels)])
    said = _said(tags)
    for one in _node_groups(world, labels):
        said |= _said(one.get("tags") or {})
    least = _least(group) or _required(world, group)
    changed = {name: value for name, value in least.items() if name not in said}
    return recorded | {
        "labels": labels,
        "taints": taints,
        "capacity": recorded["capacity"] | changed,
        "allocatable": recorded["allocatable"] | changed,
    }


def _said(tags: Mapping[str, str]) -> set[str]:
    """Return the resources that tags say, which hold whatever the types are."""
    return {*readable_quantities((key.partition(RESOURCE)[2], value) for key, value in tags.items())} - {""}


def _least(group: Mapping[str, Any]) -> dict[str, str]:
    overrides = ((group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}).get("Overrides") or ()
    names = {one["InstanceType"] for one in overrides if one.get("InstanceType")}
    types = [instance_types()[name] for name in names if name in instance_types()]
    if len(types) < 2:
        return {}
    return {
        "cpu": str(min(one["VCpuInfo"]["DefaultVCpus"] for one in types)),
        "memory": str(min(one["MemoryInfo"]["SizeInMiB"] for one in types) << 20),
        "nvidia.com/gpu": str(min(one["GpuInfo"]["Gpus"][0]["Count"] for one in types)),
    }


def _required(world: Mapping[str, Any], group: Mapping[str, Any]) -> dict[str, str]:
    spec = group.get("LaunchTemplate")
    if not spec:
        return {}
    template = (spec["LaunchTemplateName"], spec.get("Version", "$Default"))
    data = next(
        (one["data"] for one in world["launch_templates"] if (one["name"], one["version"]) == template), {}
    )
    requirements = data.get("InstanceRequirements") or {}
    if data.get("InstanceType") or not requirements:
        return {}
    least = {
        "cpu": str(requirements["VCpuCount"]["Min"]),
        "memory": str(requirements["MemoryMiB"]["Min"] << 20),
    }
    if "nvidia" in requirements.get("AcceleratorManufacturers", ()) and "gpu" in requirements.get(
        "AcceleratorTypes", ()
    ):
        least["nvidia.com/gpu"] = str(requirements["AcceleratorCount"]["Min"])
    return least


def _lost_taints(world: Mapping[str, Any], labels: Mapping[str, str]) -> list[str]:
    return [
        f"{taint['key']}=:{_EFFECTS[taint['effect']]}"
        for one in _node_groups(world, labels)
        for taint in one.get("taints") or ()
        if taint.get("key") and taint.get("value") is None and taint.get("effect") in _EFFECTS
    ]


def _node_groups(world: Mapping[str, Any], labels: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the node group of EKS that the labels name, if there is one."""
    named = labels.get("cluster-name"), labels.get("nodegroup-name")
    found = world.get("nodegroups") or ()
    return [one for one in found if (one.get("clusterName"), one.get("nodegroupName")) == named][:1]


def is_bad_group(group: Mapping[str, Any]) -> bool:
    """Whether upstream refuses the whole refresh because of this group."""
    overrides = ((group.get("MixedInstancesPolicy") or {}).get("LaunchTemplate") or {}).get("Overrides") or ()
    has_both = len(overrides) == 1 and {"InstanceType", "InstanceRequirements"} <= set(overrides[0])
    return has_both or group["MinSize"] > group["MaxSize"]
