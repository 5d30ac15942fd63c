"""A recommender with one VPA, its pods, and passes a minute apart."""

from __future__ import annotations

import numpy as np

from kubetide.units.time import Instant, minutes, parse_rfc3339
from kubetide.vertical.recommender.decide import absorb, decide
from kubetide.vertical.recommender.decision import Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.views import PodView, Samples, VpaView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.targets import Target

START = parse_rfc3339("2026-03-02T08:00:00Z")
WEB = ("shop", "web")
MINUTE = minutes(1)


def vpa(name="web", selector="app=web", **more):
    return VpaView("shop", name, Target(selector, matches=True), generation=1, **more)


def pod(name="web-1", labels=None, containers=("app",), **more):
    more = {"phase": "Running"} | more
    return PodView("shop", name, {"app": "web"} if labels is None else labels, containers=containers, **more)


def samples(at, *rows):
    """Make one answer; each row is (pod, container, millicores, bytes)."""
    return Samples(
        namespaces=tuple("shop" for _ in rows),
        names=tuple(row[0] for row in rows),
        times=np.full(len(rows), at, np.int64),
        first=np.arange(len(rows) + 1),
        containers=tuple(row[1] for row in rows),
        cpu=np.array([row[2] for row in rows], np.int64),
        memory=np.array([row[3] for row in rows], np.int64),
    )


class Run:
    """Passes that write all that they decide."""

    def __init__(self, settings: Settings | None = None, state: State | None = None) -> None:
        self.state = state or State(settings)
        self.now = START

    def tick(self, *rows, after=MINUTE, **delta):
        self.now = Instant(self.now + after)
        found = samples(self.now, *rows) if rows else None
        self.state.apply(Delta(at=self.now, samples=found, **delta))
        commands = decide(self.state, self.now)
        self.result = absorb(self.state, commands, Outcomes(), self.now)
        return commands

    def status(self, key=WEB):
        return self.state.vpas[key].stored.read()

    def target(self, key=WEB):
        [container] = self.status(key).recommendation.container_recommendations
        return container.target
