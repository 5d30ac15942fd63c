"""What tags of an Auto Scaling group say of its nodes and of how it is scaled.

Source: cluster-autoscaler (Aug 2026), AWS provider, tags of Auto Scaling groups: the prefix of a label, taint or
resource may stand anywhere in a tag's key, that of an option only once and at its beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kubetide.clouds.common.options import (
    IGNORE_DAEMON_SETS,
    SCALE_DOWN_GPU_UTILIZATION,
    SCALE_DOWN_UNNEEDED,
    SCALE_DOWN_UNREADY,
    SCALE_DOWN_UTILIZATION,
)
from kubetide.clouds.common.tag_problems import tag_problems
from kubetide.clouds.common.template import readable_taints
from kubetide.objects.node import Taint
from kubetide.units.quantity import quantity_error

PREFIX: Final = "k8s.io/cluster-autoscaler/node-template/"
LABEL: Final = f"{PREFIX}label/"
TAINT: Final = f"{PREFIX}taint/"
RESOURCE: Final = f"{PREFIX}resources/"
OPTION: Final = f"{PREFIX}autoscaling-options/"
EKS: Final = "eks:"
OPTION_NAMES: Final = (
    SCALE_DOWN_UTILIZATION,
    SCALE_DOWN_GPU_UTILIZATION,
    SCALE_DOWN_UNNEEDED,
    SCALE_DOWN_UNREADY,
    IGNORE_DAEMON_SETS,
)
"""The options that upstream reads here."""


class Tags(NamedTuple):
    """What the tags say; ``resources`` are quantities, ``warnings`` one sentence for each malformed tag."""

    labels: dict[str, str]
    taints: tuple[Taint, ...]
    resources: dict[str, str]
    options: dict[str, str]
    warnings: tuple[str, ...]


def read_tags(tags: Iterable[tuple[str, str]], *, eks_prefix: str = EKS) -> Tags:
    """Return what tags say, key and value each; where two say the same the later one counts.

    Args:
        tags: Keys and values.
        eks_prefix: Tags that hold this are labels too, unless they are a label already.
    """
    labels: dict[str, str] = {}
    taints: list[tuple[str, str]] = []
    resources: dict[str, str] = {}
    options: dict[str, str] = {}
    tags = tuple(tags)
    for key, value in tags:
        label = _named(key, LABEL)
        label = _named(key, eks_prefix) if label is None else label
        if label:
            labels[label] = value
        taint = _named(key, TAINT)
        if taint is not None:
            taints.append((taint, value))
        resource = _named(key, RESOURCE)
        if resource and quantity_error(value) is None:
            resources[resource] = value
        option = key.removeprefix(OPTION) if key.startswith(OPTION) else ""
        if option and OPTION not in option:
            options[option] = value
    warnings = tag_problems(tags, prefix=PREFIX, options=OPTION_NAMES)
    return Tags(labels, readable_taints(taints), resources, options, warnings)


def _named(key: str, prefix: str) -> str | None:
    """Return the text between the first and the second occurrence of the prefix; None where it does not occur."""
    parts = key.split(prefix)
    return parts[1] if len(parts) > 1 else None
