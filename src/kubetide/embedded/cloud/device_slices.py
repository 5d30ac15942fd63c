"""The devices of an embedded machine, as drivers would publish them: one slice a driver, one pool a node."""

from __future__ import annotations

from collections.abc import Mapping

from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, RESOURCE_SLICES


def slices_json(devices: Mapping[str, int], *, node: str, uid: str = "") -> list[Json]:
    """Return the ResourceSlices of a node.

    Args:
        devices: How many by driver.
        node: Its name, which is that of each pool too.
        uid: Its identity: the slices go with it. Empty for a node that is not there.
    """
    owner = {
        "apiVersion": NODES.api_version,
        "kind": NODES.kind,
        "name": node,
        "uid": uid,
        "controller": True,
    }
    return [
        {
            "apiVersion": RESOURCE_SLICES.api_version,
            "kind": RESOURCE_SLICES.kind,
            "metadata": {"name": f"{node}-{driver}", **({"ownerReferences": [owner]} if uid else {})},
            "spec": {
                "driver": driver,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                "nodeName": node,
                "devices": [{"name": f"device-{number}"} for number in range(count)],
            },
        }
        for driver, count in sorted(devices.items())
    ]
