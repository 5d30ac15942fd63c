"""Kinds as people of kubectl write them: short names, plurals, ``KIND/NAME``."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import click

SHORT = {
    "po": "pod",
    "pods": "pod",
    "hpas": "hpa",
    "horizontalpodautoscaler": "hpa",
    "horizontalpodautoscalers": "hpa",
    "no": "node",
    "nodes": "node",
    "ng": "nodegroup",
    "nodegroups": "nodegroup",
    "vpas": "vpa",
    "verticalpodautoscaler": "vpa",
    "verticalpodautoscalers": "vpa",
}
"""Other words for what can be explained."""

WORKLOADS = {
    "deploy": "Deployment",
    "deployment": "Deployment",
    "deployments": "Deployment",
    "sts": "StatefulSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "rs": "ReplicaSet",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
}
"""What is explained by the HPA that scales it."""

_UNSCALED: Final = frozenset({"job", "jobs", "cronjob", "cronjobs", "cj", "daemonset", "daemonsets", "ds"})
"""Workloads that nothing scales; of their pods there are answers."""


def kind_of(word: str, kinds: Collection[str]) -> str:
    """Return what a word stands for: one of these kinds, or a kind of workload. Raises BadParameter with what is near."""
    lower = word.lower()
    if lower in WORKLOADS:
        return WORKLOADS[lower]
    kind = SHORT.get(lower, lower)
    if kind in kinds:
        return kind
    import difflib

    if lower in _UNSCALED:
        raise click.BadParameter(f"no loop scales a {word}: ask about one of its pods", param_hint="KIND")
    near = difflib.get_close_matches(lower, [*kinds, *SHORT, *WORKLOADS], n=1)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise click.BadParameter(
        f"{word!r} is not one of {', '.join(kinds)}, deploy, sts, rs{hint}", param_hint="KIND"
    )
