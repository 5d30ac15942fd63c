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

_KINDS: Final = (LABEL, TAINT, RESOURCE, OPTION)
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")


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
    taints: list[Taint] = []
    resources: dict[str, str] = {}
    options: dict[str, str] = {}
    warnings: list[str] = []
    for key, value in tags:
        label = _named(key, LABEL)
        label = _named(key, eks_prefix) if label is None else label
        if label:
            labels[label] = value
        taint = _named(key, TAINT)
        if taint is not None:
            _add_taint(taints, key, taint, value, warnings)
        resource = _named(key, RESOURCE)
        if resource:
            refusal = quantity_error(value)
            if refusal is None:
                resources[resource] = value
            else:
                warnings.append(f"tag {key}: {refusal}; the tag is ignored")
        option = key.removeprefix(OPTION) if key.startswith(OPTION) else ""
        if option and OPTION not in option:
            options[option] = value
            if option not in OPTION_NAMES:
                warnings.append(f"tag {key}: no option {option}; use one of {', '.join(OPTION_NAMES)}")
        if key.startswith(PREFIX) and not any(kind in key for kind in _KINDS):
            kinds = ", ".join(kind.removeprefix(PREFIX) for kind in _KINDS)
            warnings.append(f"tag {key}: says nothing; after {PREFIX} goes one of {kinds}")
    return Tags(labels, tuple(taints), resources, options, tuple(warnings))


def _named(key: str, prefix: str) -> str | None:
    """Return the text between the first and the second occurrence of the prefix; None where it does not occur."""
    parts = key.split(prefix)
    return parts[1] if len(parts) > 1 else None


def _add_taint(taints: list[Taint], key: str, name: str, value: str, warnings: list[str]) -> None:
    # The effect must occur behind some colon, yet the first colon ends the taint's value, as upstream has it.
    if not any(f":{effect}" in value for effect in _EFFECTS):
        warnings.append(
            f"tag {key}: {value!r} is not <value>:<effect> with one of {', '.join(_EFFECTS)}; ignored"
        )
        return
    held, _, effect = value.partition(":")
    if effect not in _EFFECTS:
        warnings.append(f"tag {key}: {effect!r} is not an effect; use one of {', '.join(_EFFECTS)}")
    taints.append(Taint(key=name, value=held, effect=effect))
