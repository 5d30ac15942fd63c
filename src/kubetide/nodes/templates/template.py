"""The template of a group: what its next node will look like, and the source of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from kubetide.nodes.facts.node_capacity import capacity_of
from kubetide.nodes.memory import SeenTemplate
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.scheduling import Snapshot, classify_unbound
from kubetide.scheduling.pods.pod_class import ColumnKey

Origin = Literal["live", "seen", "group", "type", "cloud", "unwell"]
"""Who vouches for a template: ``group`` and ``type`` are a cloud's word with amounts learned from machines."""


@dataclass(frozen=True)
class Template:
    """A node that does not exist yet, the pods that will run on it, and the source of it."""

    node: Node
    pods: tuple[Pod, ...]
    origin: Origin
    source: str
    """One sentence for people."""
    fresh: Snapshot
    """Just this node with its pods, under ``node.metadata.name``, without devices: to be asked, not changed."""
    slices: tuple[ResourceSlice, ...] = ()
    """The devices that will be its own."""
    gpu_label: str = ""
    """The node label of GPU nodes."""

    @cached_property
    def stock(self) -> Mapping[ColumnKey, int]:
        """Its free amount of everything."""
        return self.fresh.stock(self.node.metadata.name)

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """Its share of cluster-wide limits."""
        return capacity_of(self.node, self.gpu_label)

    @cached_property
    def keeps_others_away(self) -> bool:
        """Whether a DaemonSet's pod on it may repel others from other nodes."""
        return any(classify_unbound(pod).anti_affinity for pod in self.pods)


class LookedAt(NamedTuple):
    """The input that a group's template was learned from: the same input gives the same template."""

    good: list[Node]
    pods: tuple[Pod, ...]
    """Those of the first node."""
    slices: tuple[ResourceSlice, ...]
    """Those of the first node."""
    seen: SeenTemplate
