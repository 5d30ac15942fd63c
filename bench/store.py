"""How fast the embedded store writes: small status patches of pods, five typed watchers reading along.

Prints one JSON line. ``floor`` is what the project promises, ``plain_merge_per_second`` what a bare
merge of the same dicts does in the same run, so that a slow machine can be reported from slow code.
The garbage collector is set as a kubetide process sets it at its start: (100_000, 50, 100).
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Callable
from time import process_time
from typing import Any

from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import PODS
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.patch import merge_patch
from kubetide.units.time import milliseconds, parse_rfc3339

PODS_COUNT = 2_000
PATCHES = 20_000
WATCHERS = 5
FLOOR = 10_000


def main() -> None:
    gc.set_threshold(100_000, 50, 100)
    result = run_virtual(measure, start=parse_rfc3339("2026-03-02T00:00:00Z"))
    print(json.dumps(result))


async def measure(clock: Clock) -> dict[str, Any]:
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    start = process_time()
    for index in range(PODS_COUNT):
        await cluster.create(PODS, builders.pod(f"p{index:05d}", labels={"app": "web"}), namespace="default")
    created = PODS_COUNT / (process_time() - start)
    listing = await cluster.list(PODS)
    seen = [0] * WATCHERS

    async def watch(number: int) -> None:
        async for batch in cluster.watch(PODS, resource_version=listing.resource_version):
            for event in batch:
                assert isinstance(event.object, Pod)
                seen[number] += event.object.status.phase == "Running"

    watchers = [asyncio.ensure_future(watch(number)) for number in range(WATCHERS)]
    await clock.sleep(milliseconds(1))
    start = process_time()
    for index in range(PATCHES):
        await cluster.patch(
            PODS, f"p{index % PODS_COUNT:05d}", patch_of(index), namespace="default", subresource="status"
        )
    while min(seen) < PATCHES:
        await clock.sleep(milliseconds(1))
    patched = PATCHES / (process_time() - start)
    for watcher in watchers:
        watcher.cancel()
    merged = plain_merge(await cluster.list(PODS.untyped))
    start = process_time()
    for _ in range(20):
        await cluster.list(PODS)
    listed = (process_time() - start) / 20
    return {
        "name": "store.status_patches_with_5_typed_watchers",
        "per_second": round(patched),
        "floor": FLOOR,
        "plain_merge_per_second": round(merged),
        "ratio_to_plain_merge": round(merged / patched, 1),
        "creates_per_second": round(created),
        "typed_list_of_2000_ms": round(listed * 1000, 2),
    }


def patch_of(index: int) -> Json:
    conditions = [
        {"type": kind, "status": "True", "reason": str(index)} for kind in ("Ready", "PodScheduled")
    ]
    return {
        "status": {
            "phase": "Running",
            "podIP": f"10.0.{index >> 8 & 255}.{index & 255}",
            "conditions": conditions,
        }
    }


def plain_merge(listing: Any, merge: Callable[[Json, Json], Json] = merge_patch) -> float:
    pods = list(listing.items)
    start = process_time()
    for index in range(PATCHES):
        at = index % len(pods)
        pods[at] = merge(pods[at], patch_of(index))
    return PATCHES / (process_time() - start)


if __name__ == "__main__":
    main()
