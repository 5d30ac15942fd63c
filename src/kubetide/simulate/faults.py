"""Faults of the API server and of nodes, as a scenario states them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from kubetide.embedded.apiserver.store import EmbeddedCluster
from kubetide.embedded.apiserver.store.request import Request
from kubetide.embedded.cloud import GROUP_LABEL
from kubetide.embedded.kubelet import KubeletPool
from kubetide.objects.node import Node, node_condition
from kubetide.ports.clock import Clock
from kubetide.ports.errors import NotFound, Unavailable
from kubetide.simulate.scenarios.build import fault_end, fault_start, faults_of
from kubetide.simulate.scenarios.scenario import Scenario
from kubetide.units.seeds import unit_interval
from kubetide.units.time import Duration, Instant, minutes
from kubetide.watching import Informer

_EXPIRE_EVERY = minutes(1)


_Windows = Sequence[tuple[Instant, Instant | None, float]]


class ApiFaults:
    """Requests that the API server rejects (``api-error``); drawn by the count of requests."""

    def __init__(self, windows: _Windows, clock: Clock, seed: int) -> None:
        self._stated = tuple(windows)
        self._windows = self._stated
        self._clock = clock
        self._seed = seed
        self._requests = 0

    @classmethod
    def of(cls, scenario: Scenario, clock: Clock, seed: int, *, may_change: bool = False) -> ApiFaults | None:
        """Return the faults of a scenario; None if it states none and none can be injected later."""
        windows = [
            (fault_start(scenario, fault), fault_end(scenario, fault), fault.probability)
            for fault in faults_of(scenario, "api-error")
        ]
        return cls(windows, clock, seed) if windows or may_change else None

    def inject(self, windows: _Windows) -> None:
        """Replace the injected faults; those of the scenario stay."""
        self._windows = (*self._stated, *windows)

    async def before(self, request: Request) -> None:
        """Raise Unavailable for a request that a fault hits."""
        self._requests += 1
        now = self._clock.now()
        for start, end, probability in self._windows:
            hit = unit_interval(self._seed, "api-error", self._requests) < probability
            if start <= now and (end is None or now < end) and hit:
                raise Unavailable(
                    f"the server is currently unable to handle the request ({request.verb} {request.kind.plural})"
                )


async def run_watch_expiries(scenario: Scenario, cluster: EmbeddedCluster, clock: Clock) -> None:
    """Expire all watches once a minute while a ``watch-expiry`` fault lasts."""
    for fault in sorted(faults_of(scenario, "watch-expiry"), key=lambda fault: fault_start(scenario, fault)):
        end = fault_end(scenario, fault)
        due = fault_start(scenario, fault)
        while True:
            await clock.sleep(Duration(due - clock.now()))
            cluster.expire_watches()
            due = Instant(due + _EXPIRE_EVERY)
            if end is None or due >= end:
                break


async def run_node_failures(
    scenario: Scenario, clock: Clock, *, seed: int, nodes: Informer[Node], kubelets: KubeletPool
) -> None:
    """Silence one node per ``node-failure`` fault from its start to its end, or forever.

    The node is drawn from those that are Ready at the start, of the fault's group if it names one;
    with a ``probability`` below 1 it may be that none fails.
    """
    async with asyncio.TaskGroup() as group:
        for index, fault in enumerate(faults_of(scenario, "node-failure")):
            start, end = fault_start(scenario, fault), fault_end(scenario, fault)
            draw = unit_interval(seed, "node-failure", index), unit_interval(seed, "node-failure-of", index)
            if draw[0] < fault.probability:
                group.create_task(_fail_one(start, end, fault.group, draw[1], clock, nodes, kubelets))


async def _fail_one(
    start: Instant,
    end: Instant | None,
    node_group: str,
    draw: float,
    clock: Clock,
    nodes: Informer[Node],
    kubelets: KubeletPool,
) -> None:
    await clock.sleep(Duration(start - clock.now()))
    ready = ready_nodes(nodes, node_group)
    if not ready:
        return
    name = ready[int(draw * len(ready))]
    with suppress(NotFound):
        await kubelets.fail_node(name)
        if end is None:
            return
        await clock.sleep(Duration(end - clock.now()))
        await kubelets.recover_node(name)


def ready_nodes(nodes: Informer[Node], node_group: str) -> list[str]:
    """Return the names of the Ready nodes of a group, empty for all groups, in order."""
    return sorted(
        node.metadata.name
        for node in nodes.objects.values()
        if (condition := node_condition(node, "Ready")) is not None
        and condition.status == "True"
        and node_group in {"", (node.metadata.labels or {}).get(GROUP_LABEL)}
    )
