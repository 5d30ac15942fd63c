"""The steps of timelines: what a person, a kubelet or a drain does to the cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.timelines.timeline import Stage, Step

from kubetide.objects.base import Json
from kubetide.objects.kinds import NODES, Kind
from kubetide.ports.cluster import Propagation
from kubetide.ports.errors import ApiError, NotFound, TooManyRequests
from kubetide.units.time import seconds


def place(kind: Kind[Any], stage: Stage) -> dict[str, str]:
    """Return the arguments that say where objects of the kind live."""
    return {"namespace": stage.namespace} if kind.namespaced else {}


@dataclass(frozen=True)
class Create:
    at: float
    kind: Kind[Any]
    body: Json

    async def play(self, stage: Stage) -> None:
        await stage.cluster.create(self.kind, self.body, **place(self.kind, stage))


@dataclass(frozen=True)
class Patch:
    """A merge patch; ``name`` may be the label of a generated name."""

    at: float
    kind: Kind[Any]
    name: str
    patch: Json

    async def play(self, stage: Stage) -> None:
        name = stage.name_of(self.name)
        await stage.cluster.patch(self.kind, name, self.patch, **place(self.kind, stage))


@dataclass(frozen=True)
class Delete:
    at: float
    kind: Kind[Any]
    name: str
    propagation: Propagation = "Background"

    async def play(self, stage: Stage) -> None:
        name = stage.name_of(self.name)
        await stage.cluster.delete(self.kind, name, propagation=self.propagation, **place(self.kind, stage))


@dataclass(frozen=True)
class Scale:
    """A write through the ``scale`` subresource, as of an HPA."""

    at: float
    kind: Kind[Any]
    name: str
    replicas: int

    async def play(self, stage: Stage) -> None:
        await stage.cluster.replace_scale(self.kind, self.name, self.replicas, namespace=stage.namespace)


@dataclass(frozen=True)
class Ready:
    at: float
    node: str

    async def play(self, stage: Stage) -> None:
        await stage.make_ready(self.node)


@dataclass(frozen=True)
class Silence:
    at: float
    node: str

    async def play(self, stage: Stage) -> None:
        await stage.silence(self.node)


@dataclass(frozen=True)
class Resume:
    at: float
    node: str

    async def play(self, stage: Stage) -> None:
        await stage.resume(self.node)


@dataclass(frozen=True)
class Evict:
    """One request to the eviction subresource; its answer is a fact."""

    at: float
    pod: str

    async def play(self, stage: Stage) -> None:
        await evict(stage, self.pod)


async def evict(stage: Stage, label: str) -> bool:
    """Evict a pod, note the answer, and return whether it goes."""
    try:
        await stage.cluster.evict(namespace=stage.namespace, pod=stage.name_of(label))
    except TooManyRequests:
        stage.note(f"eviction of {label}: 429")
        return False
    except NotFound:
        stage.note(f"eviction of {label}: 404")
        return True
    except ApiError as error:
        stage.note(f"eviction of {label}: {error.code}")
        return False
    stage.note(f"eviction of {label}: allowed")
    return True


@dataclass(frozen=True)
class Drain:
    """Cordon a node and evict its pods all at once, each again after ``pause`` seconds while a budget forbids it, as kubectl does."""

    at: float
    node: str
    pause: float = 5

    async def play(self, stage: Stage) -> None:
        await stage.cluster.patch(NODES, self.node, {"spec": {"unschedulable": True}})
        # One after another: of pods that are evicted at the same moment any may be the one that is allowed.
        left = stage.pods_on(self.node)
        while left:
            left = [label for label in left if not await evict(stage, label)]
            if left:
                await stage.sleep(seconds(self.pause))


async def play_all(stage: Stage, steps: Sequence[Step], until: Callable[[float], Awaitable[None]]) -> None:
    """Play each step at its time; one that waits delays no other. ``until(at)`` returns at a time from the start."""
    async with asyncio.TaskGroup() as group:
        for step in steps:
            await until(step.at)
            group.create_task(step.play(stage))
