"""The horizontal suite: recorded reconciles of upstream's HPA controller.

A scripted world replaces the API server and the metrics API; gathering, deciding, acting and absorbing
are the production code. The world answers no list of samples for the whole cluster, so that the
loop requests samples for each HPA, as the recording did.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from tests.conformance.cases import Case, difference

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
from kubetide.objects.kinds import DAEMON_SETS, DEPLOYMENTS, EVENTS, HPAS, REPLICA_SETS, Kind
from kubetide.objects.pod import Pod
from kubetide.objects.workload import Scale
from kubetide.ports.errors import ApiError, Conflict, InternalError, MetricsError
from kubetide.ports.metrics import ExternalValues, ObjectValue, PodSamples, PodValues, ResourceUsage
from kubetide.units.patch import merge_patch
from kubetide.units.quantity import Quantity
from kubetide.units.selectors import Selector
from kubetide.units.time import Duration, Instant, parse_duration, parse_rfc3339, seconds
from kubetide.watching import Feed

_SCALE = ("status", "scale")
_KINDS: tuple[Kind[Any], ...] = (
    DEPLOYMENTS,
    REPLICA_SETS,
    DAEMON_SETS,
    Kind("apps", "v1", "StatefulSet", "statefulsets", dict, subresources=_SCALE),
    Kind("", "v1", "ReplicationController", "replicationcontrollers", dict, subresources=_SCALE),
    Kind("example.com", "v1", "Widget", "widgets", dict, subresources=_SCALE),
)
_PLURALS = {
    "Deployment": "deployments",
    "Ingress": "ingresses",
    "Namespace": "namespaces",
    "Pod": "pods",
    "Service": "services",
}
_YEAR_ONE = "0001-01-01T00:00:00Z"

# What client libraries say when an error comes without a Status object.
_TEXT_OF_CODE = {
    401: "the server has asked for the client to provide credentials",
    403: "forbidden",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    409: "the server reported a conflict",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


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


# ── the world ───────────────────────────────────────────────────────────────────────────────────


class _Clock:
    def __init__(self) -> None:
        self.time = Instant(0)

    def now(self) -> Instant:
        return self.time

    def monotonic(self) -> Duration:
        return Duration(self.time)

    async def sleep(self, duration: Duration) -> None:
        self.time = Instant(self.time + duration)


class World:
    """The Cluster port and those of metrics, as far as the loop uses them, answering from a script.

    The answers of metrics are given as they are, whatever the selectors of the question say.
    """

    def __init__(self, case: Case) -> None:
        self.case = case
        self.step: Case = case
        self.writes: list[int] = []
        self.puts = 0
        self.status_patches: list[dict[str, Any]] = []
        self.events: list[list[str]] = []
        self.events_by_name: dict[str, list[str]] = {}

    def start(self, step: Case) -> None:
        self.step, self.puts = step, 0
        self.writes, self.status_patches, self.events = [], [], []

    async def kinds(self) -> Sequence[Kind[Any]]:
        return _KINDS

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        script = self.step["scale"]
        if script.get("getError"):
            raise _api_error(script["getError"], f"get {kind.plural} {name}")
        body = {
            "metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"},
            "spec": {"replicas": script.get("specReplicas", 0)},
            "status": {"replicas": script.get("statusReplicas", 0), "selector": script.get("selector", "")},
        }
        return msgspec.convert(body, Scale)

    async def replace_scale(
        self, kind: Kind[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
    ) -> Scale:
        errors = self.step["scale"].get("updateErrors") or []
        self.puts += 1
        if self.puts <= len(errors) and errors[self.puts - 1]:
            raise _api_error(errors[self.puts - 1], f"put {kind.plural} {name}")
        self.writes.append(replicas)
        return await self.get_scale(kind, name, namespace=namespace)

    async def patch(self, kind: Kind[Any], name: str, patch: Any, **_: Any) -> Any:
        if kind == EVENTS:
            # Counted up; the record holds every call.
            self.events.append(self.events_by_name[name])
            return
        assert kind == HPAS
        self.status_patches.append(patch["status"])
        if self.case.get("statusUpdateError"):
            raise _api_error(self.case["statusUpdateError"], f"put {HPAS.resource} {name}")

    async def create(self, kind: Kind[Any], body: Any, **_: Any) -> Any:
        assert kind == EVENTS
        event = [body["type"], body["reason"], body["message"]]
        self.events_by_name[body["metadata"]["name"]] = event
        self.events.append(event)

    async def pod_samples(self, namespace: str = "", labels: str = "") -> PodSamples:
        if not namespace:
            raise MetricsError("this world lists samples by namespace and selector only")
        script = (self.step.get("metrics") or {}).get("resource") or {
            "error": {"code": 404, "text": "404 page not found\n"}
        }
        if script.get("error"):
            raise MetricsError(str(_api_error(script["error"], "get pods.metrics.k8s.io")))
        return _samples(script.get("items") or [])

    async def pod_values(self, metric: str, **_: Any) -> PodValues:
        items = self._items("pods", metric, "custom", "pods.custom.metrics.k8s.io *")
        if not items:
            raise MetricsError("no metrics returned from custom metrics API")
        milli = np.array([_milli(item) for item in items], np.int64)
        names = tuple(item["describedObject"]["name"] for item in items)
        return PodValues(names, milli, np.zeros(len(items), np.int64))

    async def object_value(
        self, metric: str, *, namespace: str, api_version: str, kind: str, name: str, selector: str = ""
    ) -> ObjectValue:
        group = api_version.rpartition("/")[0]
        resource = f"{_PLURALS[kind]}.{group}".rstrip(".")
        about = f"{resource}.custom.metrics.k8s.io {name}"
        if kind == "Namespace":
            about = f"metrics.custom.metrics.k8s.io {metric}"
        items = self._items("object", metric, "custom", about)
        if len(items) != 1:
            raise MetricsError(
                "unable to fetch metrics from custom metrics API: the custom metrics API server "
                f"returned {len(items)} results when we asked for exactly one"
            )
        return ObjectValue(_milli(items[0]), 0)

    async def external_values(self, metric: str, **_: Any) -> ExternalValues:
        items = self._items("external", metric, "external", f"{metric}.external.metrics.k8s.io")
        if not items:
            raise MetricsError("no metrics returned from external metrics API")
        return ExternalValues([_milli(item) for item in items], 0)

    def _items(self, source: str, metric: str, api: str, about: str) -> list[dict[str, Any]]:
        scripts = (self.step.get("metrics") or {}).get(source) or {}
        script = scripts.get(metric) or {"error": {"code": 404, "text": "404 page not found\n"}}
        if script.get("error"):
            error = _api_error(script["error"], f"get {about}")
            raise MetricsError(f"unable to fetch metrics from {api} metrics API: {error}")
        return list(script.get("items") or [])


def _milli(item: Mapping[str, Any]) -> int:
    return Quantity.parse(item["value"]).milli_value()


def _api_error(script: Mapping[str, Any], request: str) -> ApiError:
    status = script.get("status")
    if status is None:
        text = _TEXT_OF_CODE.get(script["code"])
        if text is None:
            text = f'an error on the server ("{script["text"].strip()}") has prevented the request from succeeding'
        return InternalError(f"{text} ({request})")
    kind = Conflict if status.get("reason") == "Conflict" else InternalError
    return kind(status.get("message", ""))


def _samples(items: list[dict[str, Any]]) -> PodSamples:
    containers = [(c["name"], c.get("usage") or {}) for item in items for c in item.get("containers") or ()]
    resources = sorted({resource for _, usage in containers for resource in usage})
    return PodSamples(
        namespaces=tuple(item["metadata"].get("namespace", "") for item in items),
        names=tuple(item["metadata"]["name"] for item in items),
        timestamp_ns=np.array(
            [max(parse_rfc3339(i.get("timestamp") or _YEAR_ONE), -(1 << 63)) for i in items], np.int64
        ),
        window_ns=np.array([parse_duration(i.get("window") or "0s") for i in items], np.int64),
        first=np.cumsum([0, *(len(item.get("containers") or ()) for item in items)], dtype=np.int64),
        containers=tuple(name for name, _ in containers),
        usage={resource: _usage(resource, [usage for _, usage in containers]) for resource in resources},
    )


def _usage(resource: str, usages: list[dict[str, Any]]) -> ResourceUsage:
    milli = [Quantity.parse(usage[resource]).milli_value() if resource in usage else 0 for usage in usages]
    return ResourceUsage(
        np.array(milli, np.int64), np.array([resource in usage for usage in usages], np.bool_)
    )


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
        self.clock = _Clock()
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
        self.targets = Targets(self.world, _KINDS, {}, self.clock)  # type: ignore[arg-type]  # the part of the port in use
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
