"""The horizontal suite: recorded reconciles of upstream's HPA controller.

A scripted world replaces the API server and the metrics API; gathering, deciding, acting and absorbing
are the production code. The world answers no list of samples for the whole cluster, so that the
loop requests samples for each HPA, as the recording did.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.horizontal_world import KINDS, Clock, World

from kubetide.acting import EventWriter
from kubetide.horizontal.controller.act import Actor, Ending
from kubetide.horizontal.controller.gather import Gatherer
from kubetide.horizontal.controller.targets import Targets
from kubetide.horizontal.controller.values import ValueReader
from kubetide.horizontal.decide import COLUMNS_FROM, absorb, decide
from kubetide.horizontal.memory import MemoryEntry, Recommendation, ScaleEvent, ScaleEvents
from kubetide.horizontal.settings import FeatureGates, Settings
from kubetide.horizontal.state import Delta, State
from kubetide.horizontal.status.events import COMPONENT
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.pod import Pod
from kubetide.units.patch import merge_patch
from kubetide.units.selectors import Selector
from kubetide.units.time import parse_rfc3339, seconds
from kubetide.watching import Feed

# ── the suite's face ────────────────────────────────────────────────────────────────────────────


def cases(document: Any) -> Iterator[Case]:
    if isinstance(document, dict) and str(document.get("schema", "")).startswith("hpa-oracle/"):
        yield from document["cases"]


def case_id(case: Case) -> str:
    return str(case["id"])


def group(case: Case) -> str:
    return str(case["group"])


def has_steps(case: Case) -> bool:
    return bool(case.get("steps"))


def metric_types(case: Case) -> set[str]:
    specs = [
        case["hpa"]["spec"],
        *(step["hpaSpec"] for step in case.get("steps") or () if step.get("hpaSpec")),
    ]
    return {metric["type"] for spec in specs for metric in spec.get("metrics") or ()}


def first_difference(case: Case, *, columns_from: int = COLUMNS_FROM) -> str | None:
    return asyncio.run(play(case, columns_from))


# ── playing a case ──────────────────────────────────────────────────────────────────────────────


async def play(
    case: Case, columns_from: int = COLUMNS_FROM, *, world_of: Callable[[Case], World] | None = None
) -> str | None:
    """Play a case in a world, in one that answers by itself unless another is given."""
    player = _Player(case, columns_from, (world_of or World)(case))
    if not case.get("steps"):
        return await player.play(case, case["hpa"].get("status") or {})
    status = case["hpa"].get("status") or {}
    for number, step in enumerate(case["steps"]):
        found = await player.play(step, status)
        if found:
            return f"step {number}: {found}"
        status = step["expect"].get("status") or {}
    return None


class _Player:
    """One process of the loop, and the world around it."""

    def __init__(self, case: Case, columns_from: int, world: World) -> None:
        self.case = case
        self.spec = case["hpa"]["spec"]
        self.columns_from = columns_from
        self.meta = case["hpa"]["metadata"]
        self.key = (self.meta["namespace"], self.meta["name"])
        self.clock = Clock()
        self.world = world
        self._restart()
        memory = [_memory(self.key, case.get("history") or {})]
        memory += [
            MemoryEntry(other["namespace"], other["name"], selector=_printed(other.get("selector", "")))
            for other in case.get("otherHpas") or ()
        ]
        self.state = State.from_full(Delta(settings=_settings(case["config"]), memory=memory))

    def _restart(self) -> None:
        self.state = State(_settings(self.case["config"]))
        self.hpas: Feed[HorizontalPodAutoscaler] = Feed()
        self.pods: Feed[Pod] = Feed()
        self.known_pods: dict[tuple[str, str], Pod] = {}
        self.targets = Targets(self.world, KINDS, {}, self.clock)  # type: ignore[arg-type]  # the part of the port in use
        values = ValueReader(self.world, self.world, self.clock)
        self.gatherer = Gatherer(self.hpas, self.pods, self.targets, self.world, values, self.clock)

    async def play(self, step: Case, status: dict[str, Any]) -> str | None:
        """Run one tick and compare it with the record."""
        if step.get("op") == "restart":
            self._restart()
        self.spec = step.get("hpaSpec") or self.spec
        self.world.start(step)
        self.clock.time = parse_rfc3339(step["now"])
        self._show(step, status)
        ending, deleted = await self._tick()
        if deleted:
            return difference("requests", [], self.world.status_patches)
        return _compare(self.case, step, status, self.world, ending)

    def _show(self, step: Case, status: dict[str, Any]) -> None:
        if step.get("op") == "hpaDeleted":
            self.hpas.put(self.key, None)
        else:
            body = {"metadata": self.meta, "spec": self.spec, "status": status}
            self.hpas.put(self.key, msgspec.convert(body, HorizontalPodAutoscaler))
        pods = [msgspec.convert(pod, Pod) for pod in step.get("pods") or ()]
        shown = {(pod.metadata.namespace, pod.metadata.name): pod for pod in pods}
        for key in [*self.known_pods, *shown]:
            if self.known_pods.get(key) != shown.get(key):
                self.pods.put(key, shown.get(key))
        self.known_pods = shown

    async def _tick(self) -> tuple[Ending | None, bool]:
        events = EventWriter(self.world, self.clock, COMPONENT)  # type: ignore[arg-type]  # as above
        actor = Actor(self.world, self.clock, self.targets, events, uid_of=lambda _: "uid", limit=1)  # type: ignore[arg-type]  # as above
        self.state.apply(await self.gatherer.gather(self.state))
        commands = decide(self.state, self.clock.now(), columns_from=self.columns_from)
        result = absorb(self.state, commands, await actor.scale(commands))
        endings = await actor.settle(result)
        if not result.settlements:
            return None, True
        if endings:
            return endings[0], False
        [settlement] = result.settlements
        return Ending(settlement, "", settlement.error, settlement.error_label), False


def _settings(config: Mapping[str, Any]) -> Settings:
    gates = config.get("featureGates") or {}
    return Settings(
        downscale_stabilization=seconds(config["downscaleStabilizationWindowSeconds"]),
        tolerance=float(config["tolerance"]),
        cpu_initialization_period=seconds(config["cpuInitializationPeriodSeconds"]),
        initial_readiness_delay=seconds(config["initialReadinessDelaySeconds"]),
        gates=FeatureGates(
            configurable_tolerance=gates.get("HPAConfigurableTolerance", False),
            scale_to_zero=gates.get("HPAScaleToZero", False),
            pod_level_resources=gates.get("PodLevelResources", False),
        ),
    )


def _memory(key: tuple[str, str], history: Mapping[str, Any]) -> MemoryEntry:
    def events(name: str) -> list[ScaleEvent]:
        return [
            ScaleEvent(parse_rfc3339(event["timestamp"]), event["change"], bool(event.get("outdated")))
            for event in history.get(name) or ()
        ]

    recommendations = [
        Recommendation(parse_rfc3339(old["timestamp"]), old.get("replicas", 0))
        for old in history.get("recommendations") or ()
    ]
    return MemoryEntry(*key, recommendations, ScaleEvents(events("scaleUpEvents"), events("scaleDownEvents")))


def _printed(selector: str) -> str:
    return str(Selector.parse(selector)) if selector else ""


# ── comparing ───────────────────────────────────────────────────────────────────────────────────


def _compare(
    case: Case, step: Case, status: dict[str, Any], world: World, ending: Ending | None
) -> str | None:
    expected = step["expect"]
    found: dict[str, Any] = {
        "desiredReplicas": world.writes[-1] if world.writes else "no write",
        "statusWrite": bool(world.status_patches),
        "events": world.events,
        "status": status,
    }
    for patch in world.status_patches:
        found["status"] = merge_patch(found["status"], patch)
    if ending is not None:
        settlement = ending.settlement
        found["error"] = ending.error
        found["reconcileAction"] = settlement.action
        found["reconcileError"] = ending.error_label
        found["metricComputations"] = [
            {"type": c.metric_type, "action": c.action, "error": c.error}
            for c in settlement.verdict.computations
        ]
    for name, value in found.items():
        left, right = _normal(expected.get(name)), _normal(value)
        if expected.get("orderDependent") or case.get("orderDependent"):
            left, right = _any_pod(left), _any_pod(right)
        inner = difference(name, left, right)
        if inner:
            return inner
    return None


def _normal(value: Any) -> Any:
    """Make absent, null and empty the same, and zero replicas absent."""
    if isinstance(value, dict):
        cleaned = {key: _normal(inner) for key, inner in value.items()}
        return {
            key: inner
            for key, inner in cleaned.items()
            if inner is not None
            and not (inner == 0 and key in {"currentReplicas", "desiredReplicas"} and inner is not False)
        } or None
    if isinstance(value, list):
        return [_normal(inner) for inner in value] or None
    return value


def _any_pod(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _any_pod(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_any_pod(inner) for inner in value]
    return re.sub(r"\bPod [a-z0-9.-]+", "Pod *", value) if isinstance(value, str) else value
