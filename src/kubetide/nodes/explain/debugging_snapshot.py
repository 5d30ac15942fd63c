"""The input of the last tick as ``/snapshotz`` shows it: nodes with their pods, pods that fit, templates.

Source: Cluster Autoscaler (core commit 6e285e0f4b4f, July 2026), debuggingsnapshot: a list without an item is null.
Objects have the fields that the loop reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from kubetide.nodes.state import State
from kubetide.nodes.templates.build import all_templates
from kubetide.objects.node import Node
from kubetide.objects.pod import Pod
from kubetide.units.time import Instant, format_rfc3339_nano

_encoder: Final = msgspec.json.Encoder()


def debugging_snapshot(state: State, now: Instant) -> bytes:
    """Return the snapshot as JSON: it includes nodes on their way and pods placed in simulation."""
    snapshot, tick = state.snapshot, state.tick
    nodes = [_info(snapshot.node(name), snapshot.pods_on(name)) for name in snapshot.node_names]
    placed = () if tick is None else tuple(pod for pod, _ in tick.demand.placed)
    templates = all_templates(state)
    at = format_rfc3339_nano(now)
    return _encoder.encode(
        {
            "NodeList": nodes or None,
            "UnscheduledPodsCanBeScheduled": placed or None,
            "StartTimestamp": at,
            "EndTimestamp": at,
            "TemplateNodes": {
                group: _info(one.node, one.pods) for group, one in templates.items() if one is not None
            },
        }
    )


def failed_snapshot(why: str, now: Instant) -> bytes:
    """Return the answer when there is nothing to show yet."""
    at = format_rfc3339_nano(now)
    return _encoder.encode(
        {
            "NodeList": None,
            "UnscheduledPodsCanBeScheduled": None,
            "Error": why,
            "StartTimestamp": at,
            "EndTimestamp": at,
            "TemplateNodes": None,
        }
    )


def _info(node: Node, pods: Sequence[Pod]) -> dict[str, Any]:
    return {"Node": node, "Pods": pods or None}
