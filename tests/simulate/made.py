"""Timelines made by hand, for tests of their views."""

from __future__ import annotations

from kubetide.simulate.outcome.timeline import GroupPrice, Mark, ServiceSeries, Timeline
from kubetide.units.time import Instant, after, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T11:00:00Z")


def timeline(
    *, steps: int = 240, step_s: float = 15.0, services: tuple[str, ...] = ("storefront", "cart")
) -> Timeline:
    """A load that doubles in the middle third; pods and nodes follow, two steps late."""
    made = Timeline(start=at(1, step_s), step_s=step_s, pod_starts=6)
    burst = [steps // 3 <= step < 2 * steps // 3 for step in range(steps)]
    late = [steps // 3 + 2 <= step < 2 * steps // 3 + 2 for step in range(steps)]
    for name in services:
        made.services[name] = ServiceSeries(
            name,
            offered=[100.0 if high else 50.0 for high in burst],
            capacity=[120.0 if high else 60.0 for high in late],
            asked=[120.0 if high else 60.0 for high in late],
            queue=[0.0] * steps,
            latency=[0.02] * steps,
            desired=[4 if high else 2 for high in burst],
            existing=[4 if high else 2 for high in burst],
            ready=[4 if high else 2 for high in late],
            violated=[high and not ready for high, ready in zip(burst, late, strict=True)],
            violated_own_step=list(burst),
        )
        made.marks += [
            mark(steps // 3, step_s, f"default/{name}", f"default/{name}: scaled from 2 to 4", 2),
            mark(2 * steps // 3, step_s, f"default/{name}", f"default/{name}: scaled from 4 to 2", -2),
        ]
    made.marks.append(
        Mark(
            at=at(steps // 3 + 1, step_s),
            loop="nodes",
            subject="burst",
            title="group burst was increased from 0 to 1",
            why=("group burst: 1 new nodes would hold 4 pods",),
            change=1,
        )
    )
    made.marks.sort(key=lambda one: one.at)
    made.pending = [4 if high and not ready else 0 for high, ready in zip(burst, late, strict=True)]
    made.nodes = {"general": [2] * steps, "burst": [int(high) for high in late]}
    made.cpu_requested = [4.0 if high else 2.0 for high in late]
    made.cpu_used = [3.0 if high else 1.5 for high in burst]
    made.cpu_allocatable = [8.0 if high else 4.0 for high in late]
    made.prices = {
        "general": GroupPrice(per_hour=0.1, offers={"cpu": 3.9}),
        "burst": GroupPrice(per_hour=0.2, offers={"cpu": 7.8}),
    }
    made.warm_up_s = 180.0
    made.cost = [round(0.001 * step, 4) for step in range(1, steps + 1)]
    return made


def at(step: int, step_s: float = 15.0) -> Instant:
    return after(START, seconds(step * step_s))


def mark(step: int, step_s: float, subject: str, title: str, change: int) -> Mark:
    why = (f"{subject}, cpu: 91% is 1.52 of the target", f"{subject}: the rest")
    return Mark(at=at(step, step_s), loop="horizontal", subject=subject, title=title, why=why, change=change)
