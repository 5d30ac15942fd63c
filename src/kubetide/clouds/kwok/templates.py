"""Node groups of kwok's templates, and the nodes that are made of them.

Source: kwok provider of cluster-autoscaler (Aug 2026): names, annotations, the taint, bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.common.template import HOSTNAME, kube_proxy, template_node
from kubetide.clouds.kwok.config import KwokConfig
from kubetide.objects.base import Json
from kubetide.objects.node import Node
from kubetide.objects.yaml_reading import YamlError, read_documents
from kubetide.ports.cloud import NodeTemplate
from kubetide.units.numbers import NumberError, parse_integer

_PREFIX = "cluster-autoscaler.kwok.nodegroup/"
GROUP: Final = f"{_PREFIX}name"
"""Annotation of a node that was made here: its group."""
FAKE: Final = ("kwok.x-k8s.io/node", "fake")
"""Annotation by which kwok knows the nodes that it plays."""
USAGE_PATH: Final = "metrics.k8s.io/resource-metrics-path"
TAINT: Final[Json] = {"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}
PROVIDER: Final = "kwok:"

_DEFAULT_MAX = 200
_SIZE = f"{_PREFIX}min-count", f"{_PREFIX}max-count", f"{_PREFIX}desired-count"
_SIZES: Final = frozenset({"cpu", "memory", "pods"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# Kubernetes' own taints (``node.kubernetes.io/``) describe the template's node and not new ones, as do upstream's.
_PASSING_TAINTS = (
    "node.kubernetes.io/",
    "node.cloudprovider.kubernetes.io/",
    "ToBeDeletedByClusterAutoscaler",
    "DeletionCandidateOfClusterAutoscaler",
)


class KwokGroup(NamedTuple):
    """A group: its bounds, what its nodes are made of, and where that was read."""

    name: str
    min_size: int
    max_size: int
    body: Json
    place: str

    def node_template(self) -> NodeTemplate:
        """Return what the loop plans with; ready, as a node is once kwok plays it."""
        node = msgspec.convert(self.body, Node, strict=False)
        status = node.status
        planned = template_node(
            self.name,
            labels=node.metadata.labels or {},
            taints=node.spec.taints or (),
            capacity=status.capacity or status.allocatable or {},
            allocatable=status.allocatable or status.capacity or {},
            annotations=node.metadata.annotations,
        )
        return NodeTemplate(
            node=planned, pods=(kube_proxy(self.name),), source=f"node template: {self.place}"
        )

    def new_node(self, name: str) -> Json:
        """Return the body of a new node of that name."""
        meta = self.body["metadata"]
        path = f"/metrics/nodes/{name}/metrics/resource"
        return {
            **self.body,
            "metadata": {
                "name": name,
                "labels": {**meta["labels"], HOSTNAME: name},
                "annotations": {**meta["annotations"], USAGE_PATH: path},
            },
            "spec": {**self.body["spec"], "providerID": PROVIDER + name},
        }


def parse_templates(text: str, place: str) -> list[Json]:
    """Return the nodes of a v1 List or of several YAML documents; objects of other kinds are passed over, as upstream.

    Raises: CloudConfigError, which names ``place``.
    """
    try:
        documents = [one.value for one in read_documents(text, last_key_wins=True)]
    except YamlError as error:
        raise CloudConfigError(f"{place}: no YAML: {error}") from error
    nodes: list[Any] = []
    for document in documents:
        if isinstance(document, dict) and "items" in document:
            nodes += document["items"] or []
        else:
            nodes.append(document)
    for number, node in enumerate(nodes, 1):
        if not isinstance(node, dict) or (_is_node(node) and not _name(node)):
            raise CloudConfigError(f"{place}: item {number} is not a Node with metadata.name")
    return [node for node in nodes if _is_node(node)]


def read_groups(nodes: Iterable[Json], config: KwokConfig, place: str) -> tuple[KwokGroup, ...]:
    """Return the groups of templates, by name; the first template of a group counts.

    Nodes that a group already has are templates only where it has no other. Raises: CloudConfigError for bounds that
    cannot be read, for a template without size, and where no node names a group.
    """
    found: dict[str, KwokGroup] = {}
    for node in sorted(nodes, key=lambda node: GROUP in (node["metadata"].get("annotations") or {})):
        name = _group_name(node["metadata"], config)
        if name and name not in found:
            found[name] = _group(name, node, config, f"{place}, node {_name(node)}")
    if not found:
        key = f"label {config.group_label}" if config.group_label else f"annotation {config.group_annotation}"
        raise CloudConfigError(f"{place}: no node has the {key}, which names the group of a template")
    return tuple(found[name] for name in sorted(found))


def has_size(node: Mapping[str, Any]) -> bool:
    """Return whether a node says how much it holds, without which it is no template."""
    return set(_size(node)) >= _SIZES


def _size(node: Mapping[str, Any]) -> Json:
    status = node.get("status") or {}
    size: Json = status.get("allocatable") or status.get("capacity") or {}
    return size


def _group_name(metadata: Mapping[str, Any], config: KwokConfig) -> str:
    """Return the group that a template is of, empty for none: the annotation ``GROUP`` beats the key that makes it one."""
    name = config.group_of(metadata)
    return str((metadata.get("annotations") or {}).get(GROUP) or name) if name else ""


def _group(name: str, node: Mapping[str, Any], config: KwokConfig, place: str) -> KwokGroup:
    meta, status = node["metadata"], node.get("status") or {}
    size = _size(node)
    if not has_size(node):
        raise CloudConfigError(
            f"{place}: status.allocatable needs cpu, memory and pods; it has {sorted(size)}"
        )
    least, most = _bounds(meta.get("annotations") or {}, place)
    annotations = {
        key: value for key, value in (meta.get("annotations") or {}).items() if key != _LAST_APPLIED
    }
    taints = [
        taint
        for taint in (node.get("spec") or {}).get("taints") or ()
        if not _is_passing(taint.get("key", ""))
    ]
    if not config.skip_taint and TAINT not in taints:
        taints.append(TAINT)
    body: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "labels": dict(meta.get("labels") or {}),
            "annotations": {**annotations, FAKE[0]: FAKE[1], GROUP: name},
        },
        "spec": {"taints": taints},
        "status": {
            "capacity": status.get("capacity") or size,
            "allocatable": size,
            "nodeInfo": {**(status.get("nodeInfo") or {}), "kubeletVersion": "fake"},
        },
    }
    try:
        msgspec.convert(body, Node, strict=False)
    except msgspec.ValidationError as error:
        raise CloudConfigError(f"{place}: {error}") from error
    return KwokGroup(name, least, most, body, place)


def _bounds(annotations: Mapping[str, str], place: str) -> tuple[int, int]:
    sizes = []
    for key, default in zip(_SIZE, (0, _DEFAULT_MAX, 0), strict=True):
        text = str(annotations.get(key) or "")
        try:
            sizes.append(parse_integer(text) if text else default)
        except NumberError as error:
            raise CloudConfigError(f"{place}: annotation {key}: {error}") from error
    least, most, desired = sizes
    if not 0 <= least <= most:
        raise CloudConfigError(f"{place}: {_SIZE[0]} {least}, {_SIZE[1]} {most}: 0 <= min <= max must hold")
    if annotations.get(_SIZE[2]) and not least <= desired <= most:
        raise CloudConfigError(f"{place}: {_SIZE[2]} {desired} is not between {least} and {most}")
    return least, most


def _is_passing(key: str) -> bool:
    return key.startswith(_PASSING_TAINTS)


def _is_node(document: Mapping[str, Any]) -> bool:
    return bool(document.get("kind", "Node") == "Node")


def _name(node: Mapping[str, Any]) -> str:
    meta = node.get("metadata")
    return str(meta.get("name") or "") if isinstance(meta, dict) else ""
