"""Nodes and the pods on them."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.world import Json


@dataclass
class Place:
    """A node and the pods that are on it, or are thought to be."""

    node: Json
    pods: list[Json] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.node["metadata"]["name"])

    @property
    def labels(self) -> dict[str, str]:
        return self.node["metadata"].get("labels") or {}

    def copy(self) -> Place:
        return Place(self.node, list(self.pods))


def pod_key(pod: Json) -> tuple[str, str]:
    return namespace(pod), pod["metadata"]["name"]


def namespace(pod: Json) -> str:
    return str(pod["metadata"].get("namespace", ""))


def labels(pod: Json) -> dict[str, str]:
    return pod["metadata"].get("labels") or {}
