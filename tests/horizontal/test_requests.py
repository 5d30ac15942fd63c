"""What a tick reads and writes over HTTP, counted; and where a large pass pauses."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.cluster.served import served
from tests.horizontal import worlds
from tests.tasks import stop

from kubetide.cluster import HttpCluster, HttpMetrics
from kubetide.horizontal.controller import HorizontalController
from kubetide.horizontal.core import encode_delta, encode_in_pieces
from kubetide.horizontal.decide import absorb, decide, deciding
from kubetide.horizontal.settings import Settings
from kubetide.horizontal.state import Delta
from kubetide.objects.kinds import DEPLOYMENTS, HPAS, PODS
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.metrics import ContainerMetrics, PodMetrics
from kubetide.runtime.recording.records import NullRecorder
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.steps import AT_ONCE
from kubetide.units.time import before, format_rfc3339, minutes
from kubetide.watching import Caches


class Usage:
    """metrics.k8s.io with other numbers each time: within tolerance of the HPAs' targets."""

    def __init__(self, clock, count):
        self.clock, self.count, self.asked = clock, count, 0

    def pod_metrics(self):
        self.asked += 1
        return [
            PodMetrics(
                metadata=ObjectMeta(
                    name=f"app-{index}-0", namespace="default", labels={"app": f"app-{index}"}
                ),
                timestamp=format_rfc3339(self.clock.now()),
                window="15s",
                containers=(
                    ContainerMetrics(name="app", usage={"cpu": f"{99 + self.asked}m", "memory": "1Mi"}),
                ),
            )
            for index in range(self.count)
        ]

    def node_metrics(self):
        return []


class Requests:
    def __init__(self):
        self.seen = Counter()

    def answered(self, method, code, took):
        self.seen[method] += 1

    def waited(self, method, waited):
        pass

    def repeated(self, method, code):
        pass


async def fill(cluster, clock, count):
    since = format_rfc3339(before(clock.now(), minutes(60)))
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": since}
    running = {"status": {"phase": "Running", "startTime": since, "conditions": [ready]}}
    for index in range(count):
        name = f"app-{index}"
        await cluster.create(
            PODS, builders.pod(f"{name}-0", labels={"app": name}, cpu="200m"), namespace="default"
        )
        await cluster.patch(PODS, f"{name}-0", running, namespace="default", subresource="status")
        await cluster.create(DEPLOYMENTS, builders.deployment(name, replicas=1), namespace="default")
        await cluster.create(HPAS, builders.hpa(name, name), namespace="default")


def requests_of(count, ticks=3):
    """Requests by method of each tick of a loop with that many HPAs, from the second on."""

    async def main(clock):
        async with served(clock, metrics=Usage(clock, count)) as (embedded, _, connection):
            await fill(embedded, clock, count)
            requests = Requests()
            async with HttpCluster(connection, clock, observer=requests) as cluster:
                caches = Caches(cluster, clock)
                controller = HorizontalController(
                    cluster,
                    HttpMetrics(cluster, clock),
                    clock,
                    NullRecorder(),
                    None,
                    Settings(),
                    caches=caches,
                )
                keeping = asyncio.create_task(caches.run())
                for informer in caches.all:
                    await informer.synced()
                found = []
                for _ in range(ticks):
                    requests.seen.clear()
                    await controller.tick()
                    found.append(dict(requests.seen))
                await stop(keeping)
                return found[1:]

    return run_real(main)


@pytest.mark.parametrize("count", [1, 30])
def test_the_number_of_questions_does_not_grow_with_the_hpas(count):
    """A tick requests all samples at once and nothing else; it writes each status that has changed."""
    assert requests_of(count) == [{"GET": 1, "PATCH": count}] * 2


def large(hpas):
    names = [f"app-{index:05d}" for index in range(hpas)]
    return worlds.state_of(
        hpas=[worlds.hpa(name) for name in names],
        pods=[worlds.pod(f"{name}-0", app=name) for name in names],
        scales=[worlds.scale(name) for name in names],
        usage={("default", f"{name}-0"): 100 for name in names},
    )


def test_a_large_pass_pauses_and_comes_to_the_same():
    """Deciding about many HPAs pauses in between; done at one go it gives the same."""
    state = large(2 * AT_ONCE + 5)
    steps = deciding(state, worlds.NOW)
    pauses = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            commands = end.value
            break
        pauses += 1
    assert pauses == 2
    assert [v.desired for v in commands.verdicts] == [v.desired for v in decide(state, worlds.NOW).verdicts]


@pytest.mark.parametrize("full", [False, True])
def test_a_record_of_many_pods_is_made_in_pieces(full):
    """Piece by piece when it is written, the same bytes as at one go; what a tick changes is in it as it was before."""
    state = large(2 * AT_ONCE + 5)
    delta = state.dump() if full else Delta(pods=state.dump().pods, gone_pods=[("default", "gone")])
    expected, pieces = encode_delta(delta), encode_in_pieces(delta)
    absorb(state, decide(state, worlds.NOW), ())
    found = list(pieces)
    assert b"".join(found) == expected
    assert max(piece.count(b'"started"') for piece in found) == AT_ONCE


def test_a_small_pass_does_not_pause():
    """So that in a simulation nothing else comes between the steps of a tick."""
    assert list(deciding(large(3), worlds.NOW)) == []
