"""Invented loads, played tick by tick into forecasts."""

from __future__ import annotations

from kubetide.forecast.forecasts import Forecasts
from kubetide.forecast.rows import Seen
from kubetide.units.time import Instant, hours, minutes, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
TICK = seconds(15)


class Player:
    """Plays the load of one workload; ``pods`` has the pods that were held for forecasts, by tick."""

    def __init__(self, budget=10.0, start=START, zone="", tick=TICK, headroom=False):
        self.forecasts = Forecasts(budget, headroom=headroom)
        self.now = start
        self.step = tick
        self.pods = []
        self.nodes = []
        self.came = []
        self.forecasts.put_zone("web", zone)

    def tick(self, load, *, rolling=False, saturated=False, replicas=None):
        self.now = Instant(self.now + self.step)
        ahead = self.forecasts.ahead("web", self.now)
        self.pods.append(ahead.pods)
        self.nodes.append(ahead.nodes)
        reactive = max(1, round((load or 0) / 0.7))
        asked = max(ahead.pods, reactive) if replicas is None else replicas
        seen = Seen(load, asked, reactive, rolling, saturated, share=0.7)
        self.forecasts.take([("web", seen)], self.now)
        if "web" in self.forecasts.came:
            self.came.append(self.forecasts.came["web"])
        return ahead

    def run(self, load_at, length, **more):
        """Play ``load_at(minute of the run)`` for that long; return the held pods."""
        begin, first = self.now, len(self.pods)
        while self.now < begin + length:
            self.tick(load_at((self.now - begin) // minutes(1)), **more)
        return self.pods[first:]


def hourly(low=10.0, high=30.0, at=20, long=5):
    """A load that jumps at the same minute of each hour."""
    return lambda minute: high if at <= minute % 60 < at + long else low


LEARNED = hours(4)
