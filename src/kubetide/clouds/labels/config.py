"""The configuration of the provider ``labels``: which label names a node's group, and the bounds and prices of groups."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
import yaml

from kubetide.ports.errors import KubetideError

WELL_KNOWN: Final = (
    "eks.amazonaws.com/nodegroup",
    "alpha.eksctl.io/nodegroup-name",
    "cloud.google.com/gke-nodepool",
    "kubernetes.azure.com/agentpool",
    "tke.cloud.tencent.com/nodepool-id",
    "alibabacloud.com/nodepool-id",
    "karpenter.sh/nodepool",
    "kops.k8s.io/instancegroup",
    "kubetide.dev/node-group",
)
"""The label by which each platform names a node's group; of a node's labels the first of these counts."""

_MOST: Final = 1000


class LabelsConfigError(KubetideError):
    """Bounds or a file of groups that cannot be read; the text names the place and the fix."""


class Bounds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How many nodes a group may have, and what one costs an hour; None where nobody has said so."""

    min: int = 0
    max: int = _MOST
    price: float | None = None


class GroupsConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which label names a node's group, and what is known of groups.

    Attributes:
        labels: Keys; of a node's labels the first of these counts.
        groups: By name; ``*`` holds for every other one.
    """

    labels: tuple[str, ...] = WELL_KNOWN
    groups: dict[str, Bounds] = {}

    def bounds_of(self, group: str) -> Bounds:
        """Return what is known of a group."""
        return self.groups.get(group) or self.groups.get("*") or Bounds()


def read_groups(file: str, labels: Iterable[str] = (), bounds: Iterable[str] = ()) -> GroupsConfig:
    """Return what a file and the flags say; flags hold over the file.

    Args:
        file: Path of a YAML file with ``labels`` and ``groups``; empty for none.
        labels: Of ``--node-group-label``.
        bounds: Of ``--nodes``, ``<min>:<max>:<group>`` each.

    Raises: LabelsConfigError.
    """
    config = _read_file(Path(file)) if file else GroupsConfig()
    groups = dict(config.groups)
    for text in bounds:
        low, _, rest = text.partition(":")
        high, _, name = rest.partition(":")
        if not (low.isdecimal() and high.isdecimal() and name):
            raise LabelsConfigError(
                f"nodes: {text!r} cannot be read; write <min>:<max>:<group>, such as 1:10:workers"
            )
        known = groups.get(name, Bounds())
        groups[name] = Bounds(int(low), int(high), known.price)
    for name, one in groups.items():
        if not 0 <= one.min <= one.max:
            raise LabelsConfigError(
                f"group {name}: min {one.min}, max {one.max}: 0 <= min <= max must hold; give bounds such as 1:10"
            )
        if one.price is not None and not 0 <= one.price < math.inf:
            raise LabelsConfigError(f"group {name}: its price {one.price} is none; give 0 or more")
    return GroupsConfig(tuple(labels) or config.labels, groups)


def _read_file(path: Path) -> GroupsConfig:
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        return msgspec.convert({} if content is None else content, GroupsConfig)
    except OSError as error:
        raise LabelsConfigError(f"cloud-config: {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise LabelsConfigError(
            f"cloud-config: {path}: {error}; it takes `labels: [KEY]` and `groups: {{NAME: {{min: 1, max: 10, price: 0.1}}}}`"
        ) from error
