"""What a pass of the recommender costs over 50,000 containers, as JSON lines.

``python -m bench vertical``. Times are CPU time of the process, the least of several passes. ``alone`` has one pod
a VPA, so that every container has histograms to itself; ``shared`` five pods of two containers, as upstream's
figures. ``pass`` is from samples in columns to statuses encoded; ``checkpoints`` makes and encodes the checkpoints
of all. ``floor`` is plain JSON of the same statuses. Each arrangement runs in a process of its own, for its memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import msgspec
import numpy as np

from kubetide.objects.vpa import VpaStatus
from kubetide.runtime.process import tune_gc
from kubetide.units.time import Instant, minutes, parse_rfc3339
from kubetide.vertical.recommender.decide import absorb, checkpoints, decide
from kubetide.vertical.recommender.decision import Commands, Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.views import CheckpointView, PodView, Samples, VpaView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.targets import Target

START = parse_rfc3339("2026-03-02T08:00:00Z")
CONTAINERS = 50_000
VPAS = 5_000
PASSES = 8
ARRANGEMENTS = {"alone": (1, 10), "shared": (5, 2)}
"""Pods of a VPA, and containers of a pod."""


class Fleet:
    """A recommender, its pods, and what its samples are made of."""

    def __init__(self, pods_each: int, containers_each: int) -> None:
        names = tuple(f"c{number}" for number in range(containers_each))
        self.state = State(Settings())
        self.pods = [
            PodView(_space(vpa), f"app-{vpa}-{number}", {"app": f"app-{vpa}"}, "Running", names)
            for vpa in range(VPAS)
            for number in range(pods_each)
        ]
        self.vpas = [
            VpaView(_space(vpa), f"app-{vpa}", Target(f"app=app-{vpa}", matches=True), generation=1)
            for vpa in range(VPAS)
        ]
        self.rng = np.random.default_rng(1)
        self.namespaces = tuple(pod.namespace for pod in self.pods)
        self.names = tuple(pod.name for pod in self.pods)
        self.first = np.arange(len(self.pods) + 1) * containers_each
        self.containers = names * len(self.pods)

    def samples(self, at: Instant) -> Samples:
        return Samples(
            namespaces=self.namespaces,
            names=self.names,
            times=np.full(len(self.names), at, np.int64),
            first=self.first,
            containers=self.containers,
            cpu=self.rng.integers(5, 3_000, len(self.containers)),
            memory=self.rng.integers(10**7, 2 * 10**9, len(self.containers)),
        )


def _space(vpa: int) -> str:
    return f"team-{vpa % 20}"


def cpu_ms(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return (time.process_time() - begun) * 1000


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def encoded_size(made: Iterable[CheckpointView]) -> int:
    """Return the bytes of checkpoints as JSON, made one after another."""
    return sum(len(msgspec.json.encode(one.status)) for one in made)


def measure(name: str) -> None:
    encode = msgspec.json.Encoder().encode
    before = resident_bytes()
    fleet = Fleet(*ARRANGEMENTS[name])
    state = fleet.state
    first = Delta(at=START, vpas=fleet.vpas, pods=fleet.pods, samples=fleet.samples(START))
    line: dict[str, str | float] = {
        "bench": f"vertical/{name}",
        "first_ms": cpu_ms(lambda: state.apply(first)),
    }
    passes, checkpointing = [], []
    for number in range(1, PASSES + 1):
        now = Instant(START + number * minutes(1))
        samples = fleet.samples(now)
        found: list[Commands] = []

        def one_pass(now: Instant = now, samples: Samples = samples, found: list[Commands] = found) -> None:
            state.apply(Delta(at=now, samples=samples))
            found.append(decide(state, now))
            absorb(state, found[0], Outcomes(), now)

        passes.append(cpu_ms(one_pass))
        due = found[0].checkpoints
        made = checkpoints(state, due, now)
        checkpointing.append(cpu_ms(partial(encoded_size, made)))
    line["bytes_a_container"] = (resident_bytes() - before) / CONTAINERS
    read = [msgspec.json.decode(write.status, type=VpaStatus) for write in found[0].statuses]
    floor = min(cpu_ms(lambda: [encode(one) for one in read]) for _ in range(3))
    line |= {"pass_ms": min(passes), "checkpoints_ms": min(checkpointing), "floor_ms": floor}
    stored = list(checkpoints(state, due, now))
    fresh = State(Settings())
    load = Delta(
        at=now,
        vpas=fleet.vpas,
        load=[msgspec.json.decode(encode(one), type=CheckpointView) for one in stored],
    )
    line |= {"loaded": len(stored), "load_ms": cpu_ms(lambda: fresh.apply(load))}
    print(
        json.dumps(
            {key: round(value, 1) if isinstance(value, float) else value for key, value in line.items()}
        )
    )


def main() -> None:
    if sys.argv[1:]:
        tune_gc()
        measure(sys.argv[1])
        return
    for name in ARRANGEMENTS:
        subprocess.run([sys.executable, "-m", "bench.vertical", name], check=True)


if __name__ == "__main__":
    main()
