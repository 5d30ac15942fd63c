"""What a new node of a group will look like, and who vouches for it."""

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
    """A node that does not exist yet, the pods that will be on it, and who vouches for it."""

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
        """What it has left of everything."""
        return self.fresh.stock(self.node.metadata.name)

    @cached_property
    def capacity(self) -> Mapping[str, int]:
        """What it counts for where the whole cluster is limited."""
        return capacity_of(self.node, self.gpu_label)

    @cached_property
    def keeps_others_away(self) -> bool:
        """Whether a DaemonSet's pod on it may keep others off other nodes."""
        return any(classify_unbound(pod).anti_affinity for pod in self.pods)


class LookedAt(NamedTuple):
    """What a group's template was learned from: as long as this is the same, it says the same."""

    good: list[Node]
    pods: tuple[Pod, ...]
    """Those of the first node."""
    slices: tuple[ResourceSlice, ...]
    """Those of the first node."""
    seen: SeenTemplate
