"""metrics.k8s.io that plays recorded steps to each client by itself: the n-th question of each gets the n-th step.

So two recommenders see the same samples, at any time, and an hour of usage takes as long as they ask for it.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from contextlib import asynccontextmanager
from random import Random

from aiohttp import web
from tests.plane.aggregated import aggregated
from tests.plane.usage_api import METRICS

from kubetide.cluster import HttpCluster
from kubetide.objects.base import Json
from kubetide.objects.pod import Pod
from kubetide.ports.clock import Clock
from kubetide.units.time import Instant, format_rfc3339, minutes, seconds


class Play:
    """Usage of the containers of pods, minute by minute.

    Attributes:
        pods: Whose usage it is.
        last: The step that is played over and over until it is raised.
        asked: The number of the step that each user is to get next.
        held: Nobody is answered while it is not set.
        waiting: Who waits for an answer.
    """

    def __init__(self, pods: list[Pod], begin: Instant, seed: int) -> None:
        self.pods, self._begin, self._seed = pods, begin, seed
        self._steps: dict[int, bytes] = {}
        self.last = 0
        self.asked: Counter[str] = Counter()
        self.held = asyncio.Event()
        self.held.set()
        self.waiting: set[str] = set()

    def time_of(self, step: int) -> Instant:
        """The minute of a step; each pod is sampled at another second of it."""
        return Instant(self._begin + step * minutes(1))

    async def next_of(self, user: str) -> bytes:
        """Return the next step of a user, as the API has it."""
        self.waiting.add(user)
        await self.held.wait()
        self.waiting.discard(user)
        step = min(self.asked[user], self.last)
        self.asked[user] += 1
        return self.step(step)

    def step(self, number: int) -> bytes:
        """Return one step, the same one each time."""
        if number not in self._steps:
            items = [
                self._item(pod, index, number)
                for index, pod in enumerate(self.pods)
                if Random(f"{self._seed}/{index}/{number}").random() > 0.03
            ]
            answer = {"kind": "PodMetricsList", "apiVersion": METRICS.version_of, "metadata": {}}
            self._steps[number] = web.json_response(answer | {"items": items}).body
        return self._steps[number]

    def _item(self, pod: Pod, index: int, number: int) -> Json:
        meta = pod.metadata
        return {
            "metadata": {"name": meta.name, "namespace": meta.namespace, "labels": meta.labels or {}},
            # Samples of two pods at one instant would weigh the same, and rounding would decide ties.
            "timestamp": format_rfc3339(Instant(self.time_of(number) + seconds(index * 7 % 60))),
            "window": "15s",
            "containers": [
                {"name": one.name, "usage": self._usage(pod, index, one.name, number)}
                for one in pod.spec.containers or ()
            ],
        }

    def _usage(self, pod: Pod, index: int, container: str, number: int) -> Json:
        """A base of the workload with a wave; noise and now and then a peak of the container."""
        base = Random(f"{self._seed}/{pod.metadata.labels}/{container}")
        cpu, memory, phase = base.uniform(5, 1500), base.uniform(30, 1800), base.uniform(0, 6)
        now = Random(f"{self._seed}/{index}/{container}/{number}")
        wave = 1 + 0.5 * math.sin(phase + number / 9)
        peak = 3 if now.random() < 0.02 else 1
        used = {
            "cpu": f"{int(cpu * wave * now.uniform(0.8, 1.2) * peak * 1e6)}n",
            "memory": f"{int(memory * 1024 * now.uniform(0.95, 1.05) * (1 + number / 200) * peak)}Ki",
        }
        if now.random() < 0.01:
            del used["memory"]
        return used


@asynccontextmanager
async def playing(cluster: HttpCluster, clock: Clock, tls, play: Play):
    """Serve a play through the API server, which passes on the user of each request."""

    async def listed(request):
        return web.Response(
            body=await play.next_of(request.headers["X-Remote-User"]), content_type="application/json"
        )

    async with aggregated(
        cluster, clock, tls, "played-usage", [METRICS], [web.get(f"{METRICS.root}/pods", listed)]
    ):
        yield play
