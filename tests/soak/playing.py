"""Plays the scenario of a seed, and says what was wrong with it and how to play it again."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.soak.looking import Looking
from tests.soak.meddling import Meddler, meddling_of
from tests.soak.restarting import RESTARTING, Restarter
from tests.soak.scenarios import Json, load_of, may_create, scenario_of, with_options
from tests.soak.vertical import has_vpas, reviewed, with_vpas

from kubetide.ports.clock import Clock
from kubetide.runtime.recording.record_writer import RecordWriter
from kubetide.runtime.timing.clock import run_virtual
from kubetide.simulate.answers.replay import replay
from kubetide.simulate.scenarios.scenario import load_scenario, start_of
from kubetide.simulate.world import World
from kubetide.units.time import Instant, before, parse_duration


class Played(NamedTuple):
    """The result of a run.

    Attributes:
        wrong: What was wrong, a sentence each.
        looks, bindings: How often the cluster was looked at, and how many pods were bound.
        kills, losses: How often the node loop was killed and lost its lease.
    """

    wrong: list[str]
    looks: int
    bindings: int
    kills: int = 0
    losses: int = 0


class _Tracebacks(logging.Handler):
    """Collects what is logged with a traceback: a bug that a loop survived."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and len(self.found) < 20:
            self.found.append(f"logged with a traceback: {record.getMessage()}: {record.exc_info[1]!r}")


def command(seed: int, minutes: int) -> str:
    """Return the command that plays a run again."""
    return f"python -m tests.soak --seed {seed} --runs 1 --minutes {minutes}"


def play(seed: int, minutes: int, *, replays: bool) -> Played:
    """Play the scenario of a seed; with ``replays`` its records are decided again."""
    given = scenario_of(seed, minutes)
    if "a broken map" in meddling_of(seed):
        given["flags"]["expander"] = "priority,least-waste"
    if "groups to be created" in meddling_of(seed):
        given |= may_create(given)
    if has_vpas(seed):
        given |= with_vpas(given, seed)
    given |= with_options(given, seed)
    tracebacks = _Tracebacks()
    logger = logging.getLogger("kubetide")
    logger.addHandler(tracebacks)
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = write(given, seed, minutes, Path(folder))
            played = _played(path, given, seed)
            if replays:
                again = replay(path.parent / "records")
                played.wrong.extend(f"replayed: {one}" for one in again.differences)
    finally:
        logger.removeHandler(tracebacks)
    return played._replace(wrong=played.wrong + tracebacks.found)


def write(given: Json, seed: int, minutes: int, folder: Path) -> Path:
    """Write a scenario and the traces of its services, and return the scenario's file."""
    for service in given["services"]:
        trace = Path(folder, service["load"]["trace"])
        trace.write_text(load_of(seed, service["deployment"], minutes))
    path = Path(folder, "scenario.yaml")
    path.write_text(json.dumps(given, indent=1))
    return path


def _played(path: Path, given: Json, seed: int) -> Played:
    scenario = load_scenario(path)
    end = Instant(start_of(scenario) + parse_duration(scenario.duration))
    writer = RecordWriter(path.parent / "records", warn=lambda _: None)
    found: list[Played] = []

    async def main(clock: Clock) -> None:
        writer.start()
        world = World(scenario, clock, base=path.parent, end=end, seed=seed, recorder=writer)
        looking = Looking(world, _bounds(given), reviewed(given))
        meddler = Meddler(world, seed)
        restarter = Restarter(world, seed, tuple(one for one in meddling_of(seed) if one in RESTARTING))
        tasks = [asyncio.ensure_future(one.run()) for one in (looking, meddler)]
        try:
            await world.run()
        finally:
            for task in tasks:
                task.cancel()
            writer.close()
        wrong = [*world.violations(), *restarter.wrong, *looking.found]
        found.append(Played(wrong, looking.looks, looking.bindings, restarter.kills, restarter.losses))

    run_virtual(main, start=before(start_of(scenario), parse_duration(scenario.warm_up)))
    return found[0]


def _bounds(given: Json) -> dict[str, tuple[int, int]]:
    manifests = [json.loads(one) for one in given["manifests"]]
    return {
        one["metadata"]["name"]: (one["spec"]["minReplicas"], one["spec"]["maxReplicas"])
        for one in manifests
        if one["kind"] == "HorizontalPodAutoscaler"
    }
