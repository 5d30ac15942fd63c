"""The shipped scenario buys no node that nobody needs, however long pods take to stop."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest
from tests.simulate.test_runs import EXAMPLES

from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.scenarios.show import end_of_show, shown_part
from kubetide.simulate.world import World
from kubetide.units.time import Instant, before, format_rfc3339, minutes, parse_duration, seconds

SHOP = EXAMPLES / "web-shop.yaml"
LOOK_EVERY = seconds(5)
NEVER = Instant(0)
SOON = minutes(1)
"""So long after a drain an increase still comes of it: the new pods have found their nodes by then."""


@dataclass
class Purchases:
    """Watches a world for nodes that no pod needs; ``needless`` holds a sentence each."""

    world: World
    needless: list[str] = field(default_factory=list)
    bought: int = 0
    drains: int = 0
    _used: set[str] = field(default_factory=set)
    _drained: Instant = NEVER
    _sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self):
        self.world.pods.on_change(self._pod_changed)
        self.world.nodes.on_change(self._node_changed)

    def _found(self, what):
        self.needless.append(f"{format_rfc3339(self.world.clock.now())} {what}")

    def _pod_changed(self, _key, _old, new):
        if new is not None and new.spec.node_name:
            self._used.add(new.spec.node_name)

    def _node_changed(self, key, old, new):
        if new is not None and self._is_drained(new):
            self.drains += old is None or not self._is_drained(old)
            self._drained = self.world.clock.now()
        if new is None and key[1] not in self._used:
            self._found(f"node {key[1]} was given back and never ran a pod")

    @staticmethod
    def _is_drained(node):
        return any(taint.key == "ToBeDeletedByClusterAutoscaler" for taint in node.spec.taints or ())

    async def run(self):
        """Look at the sizes of the groups until cancelled."""
        while True:
            await self.world.clock.sleep(LOOK_EVERY)
            if any(self._is_drained(node) for node in self.world.nodes.objects.values()):
                self._drained = self.world.clock.now()
            for group in await self.world.cloud.refresh():
                grown = group.target_size - self._sizes.get(group.id, group.target_size)
                self._sizes[group.id] = group.target_size
                self.bought += max(grown, 0)
                if grown > 0 and self.world.clock.now() - self._drained < SOON:
                    self._found(f"group {group.id} has grown to {group.target_size} at a drain")


def played(seed: int, stop: str) -> Purchases:
    """Play the part of the web shop that ``kubetide up`` plays, in virtual time, with pods that stop within ``stop``."""
    scenario = shown_part(load_scenario(SHOP))
    scenario = msgspec.structs.replace(scenario, pods=msgspec.structs.replace(scenario.pods, stop=stop))
    watched = []

    async def main(clock):
        world = World(
            scenario,
            clock,
            base=SHOP.parent,
            end=end_of_show(scenario, None),
            seed=seed,
            recorder=NullRecorder(),
        )
        watched.append(Purchases(world))
        task = asyncio.ensure_future(watched[0].run())
        try:
            await world.run()
        finally:
            task.cancel()

    run_virtual(main, start=before(start_of(scenario), parse_duration(scenario.warm_up)))
    return watched[0]


@pytest.mark.slow
@pytest.mark.parametrize("stop", ["1s", "30s"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_shipped_scenario_buys_no_node_in_vain(seed, stop):
    """No node is given back that never ran a pod, and no group grows at a drain."""
    purchases = played(seed, stop)
    assert purchases.needless == []
    assert purchases.bought >= 2
    assert purchases.drains >= 2
