"""Which groups are alike for each of the clouds: labels that tell of the place or the group do not count."""

from __future__ import annotations

from tests.nodes.reference.places import Place
from tests.nodes.reference.similar import Ratios, are_similar
from tests.nodes.reference.world import World

POOL_LABELS = ("agentpool", "kubernetes.azure.com/agentpool")
IGNORED_LABELS = {
    "aws": (
        "alpha.eksctl.io/instance-id",
        "alpha.eksctl.io/nodegroup-name",
        "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig",
        "lifecycle",
        "topology.ebs.csi.aws.com/zone",
        "topology.k8s.aws/zone-id",
    ),
    "gce": ("topology.gke.io/zone",),
    "azure": (
        *POOL_LABELS,
        "topology.disk.csi.azure.com/zone",
        "aksEngineVersion",
        "creationSource",
        "poolName",
        "resourceNameSuffix",
        "kubernetes.azure.com/node-image-version",
        "kubernetes.azure.com/consolidated-additional-properties",
    ),
}


def are_alike(world: World, one: Place, other: Place) -> bool:
    """Return whether two templates are alike by the rule of the story's cloud.

    The flags for labels and tolerances count with these clouds only; with others upstream's defaults hold.
    """
    cloud = world.comparator
    if cloud not in IGNORED_LABELS:
        return are_similar(one, other)
    if cloud == "azure" and _share_a_pool(one, other):
        return True
    flags = world.flags
    ratios = Ratios(
        flags.number("memory-difference-ratio"),
        flags.number("max-allocatable-difference-ratio"),
        flags.number("max-free-difference-ratio"),
    )
    return are_similar(one, other, (*IGNORED_LABELS[cloud], *flags.names("balancing-ignore-label")), ratios)


def _share_a_pool(one: Place, other: Place) -> bool:
    mine, theirs = (place.node["metadata"].get("labels") or {} for place in (one, other))
    return any(mine.get(name) and mine[name] == theirs.get(name) for name in POOL_LABELS)
