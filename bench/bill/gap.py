"""The money above the bound: the price of nodes by their activity, while a set is played.

``booting``: not ready yet. ``idle``: ready and without pods. ``oversized``: what a node costs above the cheapest type that
holds its pods. The rest is ``fitting``: the cheapest whole machine for what is on each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from bench.bill.rows import TypeRow
from kubetide.embedded.cloud import GROUP_LABEL
from kubetide.objects.meta import Key
from kubetide.objects.node import Node, node_condition
from kubetide.objects.pod import Pod, is_finished
from kubetide.ports.clock import Clock
from kubetide.scheduling import pod_requests
from kubetide.units.time import Instant

_GPU = "nvidia.com/gpu"
_Load = tuple[int, int, int, int]
"""Milli-CPU, MiB, GPUs, pods."""


class Gap:
    """Follows pods and nodes; ``usd`` is the price of node time by what the nodes did."""

    def __init__(self, types: Sequence[TypeRow], clock: Clock) -> None:
        self._clock = clock
        self._types = {one.name.replace(".", "-"): one for one in types}
        self._ready: dict[str, str] = {}
        """Ready nodes and their group."""
        self._load: dict[str, list[int]] = {}
        self._since: dict[str, Instant] = {}
        self._at: dict[Key, tuple[str, _Load]] = {}
        self.usd = {"idle": 0.0, "oversized": 0.0, "fitting": 0.0}
        self._cheapest = lru_cache(maxsize=None)(self._least)

    def node_changed(self, key: Key, old: Node | None, new: Node | None) -> None:
        """Follow which nodes are ready."""
        del old
        name = key[1]
        if new is None:
            self._settle(name)
            self._ready.pop(name, None)
            self._since.pop(name, None)
            return
        condition = node_condition(new, "Ready")
        if name not in self._ready and condition is not None and condition.status == "True":
            self._ready[name] = (new.metadata.labels or {}).get(GROUP_LABEL, "")
            self._since[name] = self._clock.now()

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """Follow what is on each node."""
        del old
        there = new is not None and new.spec.node_name and not is_finished(new)
        if there and key not in self._at:
            assert new is not None
            asked = pod_requests(new)
            load = asked.get("cpu", 0), asked.get("memory", 0) >> 20, asked.get(_GPU, 0), 1
            self._put(new.spec.node_name, load, 1)
            self._at[key] = new.spec.node_name, load
        elif not there and key in self._at:
            self._put(*self._at.pop(key), -1)

    def _put(self, name: str, load: _Load, sign: int) -> None:
        self._settle(name)
        now = self._load.setdefault(name, [0, 0, 0, 0])
        for at, amount in enumerate(load):
            now[at] += sign * amount

    def _settle(self, name: str) -> None:
        """Charge what the node has done since it last changed."""
        since = self._since.get(name)
        if since is None:
            return
        now = self._clock.now()
        self._since[name] = now
        one = self._types[self._ready[name]]
        hours = (now - since) / 3.6e12
        load = self._load.get(name, [0, 0, 0, 0])
        if not load[3]:
            self.usd["idle"] += hours * one.usd_per_hour
            return
        model = one.gpu_model if load[2] else ""
        least = min(one.usd_per_hour, self._cheapest((load[0], load[1], load[2], load[3]), model))
        self.usd["oversized"] += hours * (one.usd_per_hour - least)
        self.usd["fitting"] += hours * least

    def _least(self, load: _Load, model: str) -> float:
        return min(
            one.usd_per_hour
            for one in self._types.values()
            if load[0] <= one.cpu_m
            and load[1] <= one.memory_mib
            and load[2] <= one.gpus
            and load[3] <= one.max_pods
            and model in ("", one.gpu_model)
        )

    def parts(self, cost_usd: float) -> dict[str, float]:
        """Return USD by use; ``booting`` is what no ready node cost."""
        for name in list(self._since):
            self._settle(name)
        parts = {"booting": cost_usd - sum(self.usd.values()), **self.usd}
        return {name: round(usd, 4) for name, usd in parts.items()}
