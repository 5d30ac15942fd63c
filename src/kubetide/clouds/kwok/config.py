"""The configuration of the provider ``kwok``: one YAML text in a ConfigMap.

Source: kwok provider of cluster-autoscaler (Aug 2026), ConfigMap ``kwok-provider-config``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.objects.yaml_reading import YamlError, read_documents

DEFAULT_CONFIG_MAP: Final = "kwok-provider-config"
CONFIG_KEY: Final = "config"
TEMPLATES_KEY: Final = "templates"

_SHAPE = "it needs `readNodesFrom: configmap` or `cluster`, and `nodegroups: {fromNodeLabelKey: KEY}` or `{fromNodeAnnotationKey: KEY}`"


class KwokConfig(NamedTuple):
    """Where node templates come from, what groups them, and what their nodes get.

    Attributes:
        source: ``configmap``, or ``cluster`` for the nodes that there are.
        templates: Name of the ConfigMap of templates; empty for the source ``cluster``.
        group_label: Key of the node label that names the group; empty where an annotation does.
        group_annotation: Key of the annotation that names the group; empty where a label does.
        skip_taint: Whether nodes go without the taint ``kwok-provider``.
        gpu_label: Label of GPU nodes; empty for none.
        gpu_types: The values that it may have, ordered.
    """

    source: Literal["configmap", "cluster"]
    templates: str = ""
    group_label: str = ""
    group_annotation: str = ""
    skip_taint: bool = False
    gpu_label: str = ""
    gpu_types: tuple[str, ...] = ()

    def group_of(self, metadata: Mapping[str, Any]) -> str:
        """Return the group that a template's metadata names; empty for none."""
        if self.group_label:
            return str((metadata.get("labels") or {}).get(self.group_label) or "")
        return str((metadata.get("annotations") or {}).get(self.group_annotation) or "")


def parse_config(text: str, place: str) -> KwokConfig:
    """Return what the YAML says; unknown keys are ignored. Raises CloudConfigError, which names ``place``."""
    try:
        content = next((one.value for one in read_documents(text, last_key_wins=True)), None)
    except YamlError as error:
        raise CloudConfigError(f"{place}: no YAML: {error}") from error
    if not isinstance(content, dict):
        raise CloudConfigError(f"{place}: no map; {_SHAPE}")
    read = _Reader(content, place)
    source = read.text("readNodesFrom")
    label, annotation = (
        read.text("nodegroups.fromNodeLabelKey"),
        read.text("nodegroups.fromNodeAnnotationKey"),
    )
    if source not in {"configmap", "cluster"}:
        raise CloudConfigError(f"{place}: readNodesFrom is {source!r}; {_SHAPE}")
    if bool(label) == bool(annotation):
        raise CloudConfigError(
            f"{place}: nodegroups has fromNodeLabelKey {label!r} and fromNodeAnnotationKey {annotation!r}; set one of them"
        )
    templates = read.text("configmap.name")
    if source == "configmap" and not templates:
        raise CloudConfigError(f"{place}: readNodesFrom: configmap needs configmap.name, which is not set")
    gpu_label, gpu_types = _gpus(read, place)
    return KwokConfig(
        source="configmap" if source == "configmap" else "cluster",
        templates=templates if source == "configmap" else "",
        group_label=label,
        group_annotation=annotation,
        skip_taint=read.flag("nodes.skipTaint"),
        gpu_label=gpu_label,
        gpu_types=gpu_types,
    )


def _gpus(read: _Reader, place: str) -> tuple[str, tuple[str, ...]]:
    if read.at("nodes.gpuConfig") is None:
        return "", ()
    label, types = read.text("nodes.gpuConfig.gpuLabelKey"), read.at("nodes.gpuConfig.availableGPUTypes")
    if not label or not isinstance(types, dict):
        raise CloudConfigError(
            f"{place}: nodes.gpuConfig needs both gpuLabelKey and availableGPUTypes, a map with a key for each type"
        )
    return label, tuple(sorted(str(one) for one in types))


class _Reader:
    """Values by path, each checked for its type."""

    def __init__(self, content: Mapping[str, Any], place: str) -> None:
        self._content, self._place = content, place

    def at(self, path: str) -> Any:
        found: Any = self._content
        for at, key in enumerate(path.split(".")):
            if found is None:
                return None
            if not isinstance(found, dict):
                inner = ".".join(path.split(".")[:at])
                raise CloudConfigError(f"{self._place}: {inner} is {found!r}, not a map")
            # As upstream's decoder: the letters' case does not count, but the key as it is written comes first.
            found = found.get(
                key, next((found[one] for one in found if str(one).lower() == key.lower()), None)
            )
        return found

    def text(self, path: str) -> str:
        return str(self._typed(path, "", lambda value: isinstance(value, str), "a text")).strip()

    def flag(self, path: str) -> bool:
        return bool(self._typed(path, False, lambda value: isinstance(value, bool), "true or false"))

    def _typed(self, path: str, default: object, fits: Callable[[object], bool], expected: str) -> object:
        value = self.at(path)
        if value is None:
            return default
        if not fits(value):
            raise CloudConfigError(f"{self._place}: {path} is {value!r}, not {expected}")
        return value
