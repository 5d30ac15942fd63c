"""Faults that no scenario can state: others who change sizes, a cloud that hangs, is behind a protocol or names a machine twice, odd nodes, a broken map.

All are drawn from the seed of the run. Sizes are changed within the groups' limits only, so that what must hold still must.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec.structs import replace
from tests.soak.protocol import CALLS, behind_protocol
from tests.soak.restarting import RESTARTING
from tests.soak.scenarios import Draw

from kubetide.objects.kinds import CONFIG_MAPS, NODES
from kubetide.objects.meta import controller_of
from kubetide.ports.cloud import NodeGroup
from kubetide.ports.errors import ApiError, CloudError
from kubetide.simulate.world import World
from kubetide.units.time import minutes, seconds

MEDDLING = (
    "others' sizes",
    "hanging calls",
    "a machine in two groups",
    "a node without a machine",
    "a broken map",
    *RESTARTING,
    "groups to be created",
    "a cloud behind a protocol",
)
PRIORITIES = "cluster-autoscaler-priority-expander"
_BROKEN = ("10: [", "- a\n- b", "ten:\n  - g.*", "10:\n  - '('", "")
_GOOD = "10:\n  - .*\n"


def meddling_of(seed: int) -> tuple[str, ...]:
    """Return what is meddled with in the run of a seed."""
    draw = Draw(seed * 31 + 7)
    return tuple(one for one in MEDDLING if draw.chance(0.4))


class Meddler:
    """Meddles with a world until it ends."""

    def __init__(self, world: World, seed: int) -> None:
        """Take the world, before its loops begin."""
        self._world = world
        self._draw = Draw(seed * 37 + 11)
        self._tasks: list[Callable[[], Awaitable[None]]] = []
        chosen = meddling_of(seed)
        # The protocol knows no groups that are created.
        if "a cloud behind a protocol" in chosen and "groups to be created" not in chosen:
            behind = behind_protocol(world, Draw(seed * 41 + 13))
            for call in CALLS:
                self._replace(call, getattr(behind, call))
        if "hanging calls" in chosen:
            for call in CALLS:
                self._replace(call, self._hanging(getattr(world.cloud, call)))
        if "a machine in two groups" in chosen:
            self._replace("refresh", self._doubling(world.cloud.refresh))
        if "others' sizes" in chosen:
            self._tasks.append(self._change_a_size)
        if "a node without a machine" in chosen:
            self._tasks.append(self._come_and_go)
        if "a broken map" in chosen:
            self._tasks.append(self._write_priorities)

    async def run(self) -> None:
        """Do one thing after another, minutes apart."""
        while self._tasks:
            await self._world.clock.sleep(minutes(self._draw.between(2, 12)))
            try:
                await self._draw.one_of(self._tasks)()
            except (ApiError, CloudError):
                continue  # the world has faults of its own

    def _replace(self, call: str, by: Callable[..., Awaitable[Any]]) -> None:
        setattr(self._world.cloud, call, by)

    def _hanging(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def hang(*given: Any, **named: Any) -> Any:
            if self._draw.chance(0.02):
                await self._world.clock.sleep(seconds(self._draw.between(20, 400)))
            return await call(*given, **named)

        return hang

    def _doubling(self, refresh: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]]:
        """Name a machine of the first group in the last one too, for some minutes at a time."""

        async def doubled() -> tuple[NodeGroup, ...]:
            groups = list(await refresh())
            minute = self._world.clock.now() // minutes(1)
            if minute % 20 < 5 and len(groups) > 1 and groups[0].instances:
                twice = (*(groups[-1].instances or ()), groups[0].instances[0])
                groups[-1] = replace(groups[-1], instances=twice)
            return tuple(groups)

        return doubled

    async def _change_a_size(self) -> None:
        """Order a machine, or delete one that nobody needs, as somebody at the cloud's console does."""
        group = self._draw.one_of(await self._world.cloud.refresh())
        used = self._used()
        idle = {
            node.spec.provider_id
            for node in self._world.nodes.objects.values()
            if node.metadata.name not in used
        }
        running = [one.provider_id for one in group.instances or () if one.provider_id in idle]
        if self._draw.chance(0.5) and group.target_size < group.max_size:
            await self._world.cloud.increase_size(group.id, 1)
        elif group.target_size > group.min_size and running:
            doomed = self._draw.one_of(running)
            # Cordoned first: whoever deletes a machine by hand would else lose the pods that come while it ends.
            name = next(
                key for (_, key), node in self._world.nodes.objects.items() if node.spec.provider_id == doomed
            )
            await self._world.cluster.patch(NODES, name, {"spec": {"unschedulable": True}})
            await self._world.clock.sleep(seconds(1))
            if name in self._used():  # a pod was bound there just before
                await self._world.cluster.patch(NODES, name, {"spec": {"unschedulable": None}})
            else:
                await self._world.cloud.delete_nodes(group.id, [doomed])

    def _used(self) -> set[str]:
        """Return the names of the nodes that have pods, those of DaemonSets left out."""
        return {
            pod.spec.node_name
            for pod in self._world.pods.objects.values()
            if (owner := controller_of(pod.metadata)) is None or owner.kind != "DaemonSet"
        }

    async def _come_and_go(self) -> None:
        """Let a node come that says of no machine, ready or not, and go again after some minutes."""
        status = self._draw.one_of(("True", "False"))
        sizes = {"cpu": "2", "memory": "4Gi", "pods": "10"}
        body = {
            "metadata": {"name": "stray"},
            "spec": {"taints": [{"key": "stray", "effect": "NoSchedule"}]},
            "status": {
                "capacity": sizes,
                "allocatable": sizes,
                "conditions": [{"type": "Ready", "status": status}],
            },
        }
        await self._world.cluster.create(NODES, body)
        await asyncio.shield(self._world.clock.sleep(minutes(self._draw.between(1, 20))))
        await self._world.cluster.delete(NODES, "stray")

    async def _write_priorities(self) -> None:
        """Write the map of the expander ``priority``: broken in one way or another, or good."""
        text = self._draw.one_of((*_BROKEN, _GOOD))
        body = {"metadata": {"name": PRIORITIES}, "data": {"priorities": text}}
        try:
            await self._world.cluster.create(CONFIG_MAPS, body, namespace="kube-system")
        except ApiError:
            await self._world.cluster.patch(
                CONFIG_MAPS, PRIORITIES, {"data": body["data"]}, namespace="kube-system"
            )
