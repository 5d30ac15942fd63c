"""A driver of devices in a town, as its kubelet plugin does it: slices come once its pod runs on a node, one after the other.

Only the hardware is made up: the pods are a DaemonSet's, and the slices go with their node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager, suppress

import msgspec
from msgspec.structs import replace
from tests.plane.towns import Town, app_of

from kubetide.embedded.cloud.groups import GROUP_LABEL
from kubetide.objects.base import Json
from kubetide.objects.kinds import DAEMON_SETS, DEVICE_CLASSES, PODS, RESOURCE_SLICES
from kubetide.objects.pod import Pod
from kubetide.objects.resource import ResourceSlice
from kubetide.ports.cloud import NodeGroup
from kubetide.ports.errors import NotFound
from kubetide.testing import builders

DRIVER = "gpu.example.com"
"""Also the name of the class of its devices."""

RESOURCE = "example.com/accelerator"
"""What pods may request in place of a claim. For pods that request a ``.../gpu`` nothing is bought for half a minute."""

GROUP = "gpu"
DEVICES = 4
"""Of each node, each in a slice of its own."""

_NAME = "gpu-driver"


def promised(groups: Sequence[NodeGroup]) -> tuple[NodeGroup, ...]:
    """Return the groups with what the driver will publish in the template of its own."""
    slices = msgspec.convert(_slices("template"), tuple[ResourceSlice, ...])
    return tuple(
        replace(one, template=replace(one.template, slices=slices)) if one.id == GROUP else one
        for one in groups
    )


class Driver:
    """The part that a test sees.

    Attributes:
        may_begin, may_end: Without the first it publishes nothing, without the second all but the last slice.
    """

    def __init__(self, place: Town) -> None:
        self._place = place
        self.may_begin, self.may_end = asyncio.Event(), asyncio.Event()

    async def publish(self, pod: Pod) -> None:
        """Publish the devices of a node that a pod of the driver runs on."""
        name = pod.spec.node_name
        node = self._place.nodes.objects["", name]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid}
        *first, last = _slices(name)
        await self.may_begin.wait()
        for piece in first:
            await self._place.cluster.create(RESOURCE_SLICES, _owned(piece, owner))
        await self.may_end.wait()
        await self._place.cluster.create(RESOURCE_SLICES, _owned(last, owner))


def _slices(node: str) -> list[Json]:
    return [
        {
            "metadata": {"name": f"{node}-{number}"},
            "spec": {
                "driver": DRIVER,
                "nodeName": node,
                "pool": {"name": node, "generation": 1, "resourceSliceCount": DEVICES},
                "devices": [{"name": f"gpu-{number}"}],
            },
        }
        for number in range(DEVICES)
    ]


def _owned(piece: Json, owner: Json) -> Json:
    return {**piece, "metadata": {**piece["metadata"], "ownerReferences": [owner]}}


@asynccontextmanager
async def gpu_driver(place: Town):
    """Install the driver; return the Driver."""
    labels = {"app": _NAME}
    template = {
        "metadata": {"labels": labels},
        "spec": {**builders.pod_spec(), "nodeSelector": {GROUP_LABEL: GROUP}},
    }
    daemons = {
        "metadata": {"name": _NAME},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    await place.cluster.create(DAEMON_SETS, daemons, namespace=place.home)
    await place.cluster.create(
        DEVICE_CLASSES,
        {"metadata": {"name": DRIVER}, "spec": {"selectors": selectors, "extendedResourceName": RESOURCE}},
    )
    driver = Driver(place)
    async with asyncio.TaskGroup() as group:
        at_work: dict[str, asyncio.Task[None]] = {}
        ended = asyncio.Event()

        def look(*_) -> None:
            for pod in place.running(_NAME):
                if pod.metadata.uid not in at_work and not ended.is_set():
                    at_work[pod.metadata.uid] = group.create_task(driver.publish(pod))

        place.pods.on_change(look)
        try:
            yield driver
        finally:
            ended.set()
            for task in at_work.values():
                task.cancel()
            with suppress(NotFound):
                await place.cluster.delete(DEVICE_CLASSES, DRIVER)
            # Those of deleted nodes would be there for another 40 s, until somebody collects them.
            for pod in [one for one in place.pods.objects.values() if app_of(one) == _NAME]:
                with suppress(NotFound):
                    await place.cluster.delete(
                        PODS, pod.metadata.name, namespace=place.home, grace_period_s=0
                    )
