"""Plays recorded passes of upstream's recommender over days of a cluster's life.

The API server is a few dicts; State, decide and absorb are the production code. Float totals are
compared to 1e-9, as upstream's own differ in the last digits from run to run.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from tests.conformance.cases import Case, difference

from kubetide.objects.cluster import Event
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler, VerticalPodAutoscalerCheckpoint
from kubetide.units.time import Instant, format_rfc3339, parse_duration, parse_rfc3339
from kubetide.vertical.recommender.decide import absorb, checkpoints, decide
from kubetide.vertical.recommender.decision import Commands, Outcomes
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.facts.history import (
    HistoryError,
    HistorySettings,
    Series,
    queries,
    read_history,
)
from kubetide.vertical.recommender.facts.ooms import ooms_of_event, ooms_of_update
from kubetide.vertical.recommender.facts.views import (
    CheckpointView,
    Oom,
    Samples,
    StatusView,
    checkpoint_view,
    pod_view,
    vpa_view,
)
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.state import State
from kubetide.vertical.targets import ControllerKey, Controllers, TargetError, read_target
from kubetide.vertical.workloads import WELL_KNOWN

_NS = 1_000_000_000


def first_difference(case: Case) -> str | None:
    return World(case).play()


def settings_of(flags: dict[str, str]) -> Settings:
    """Read upstream's flags; those that the recommender's core does not have are passed over."""
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    found: dict[str, Any] = {}
    for flag, text in flags.items():
        name = flag.replace("-", "_")
        if flag == "feature-gates":
            found["per_vpa_config"] = "PerVPAConfig=true" in text
        elif name == "ignored_vpa_object_namespaces":
            found[name] = tuple(text.split(","))
        elif name in types:
            found[name] = _flag(types[name], text)
    return Settings(**found)


def _flag(kind: Any, text: str) -> Any:
    if kind is bool:
        return text == "true"
    if kind in {int, float, str}:
        return kind(text)
    return parse_duration(text)


class World:
    """The content of an API server, a metrics server and Prometheus."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.epoch = parse_rfc3339(case["epoch"])
        self.controllers: dict[tuple[str, str, str], Any] = {}
        self.vpas: dict[tuple[str, str], dict[str, Any]] = {}
        self.pods: dict[tuple[str, str], dict[str, Any]] = {}
        self.checkpoints: dict[tuple[str, str], dict[str, Any]] = {}
        self.reported: dict[str, set[tuple[str, str]]] = {"vpas": set(), "pods": set()}
        self.ooms: list[Oom] = []
        self.writes: list[str] = []
        self.set_controllers(case["controllers"])
        for name in ("vpas", "pods", "checkpoints"):
            self.put(getattr(self, name), case[name])
        older = case.get("release") == "1.7"
        self.settings = msgspec.structs.replace(
            settings_of(case["flags"]), oom_age_by_window=older, forget_pods_first=older
        )
        self.state = State(self.settings)
        self.fresh = True

    def put(self, into: dict[tuple[str, str], dict[str, Any]], objects: list[dict[str, Any]]) -> None:
        for one in objects:
            into[one["metadata"].get("namespace", ""), one["metadata"]["name"]] = one

    def set_controllers(self, objects: list[dict[str, Any]]) -> None:
        for one in objects:
            meta = one["metadata"]
            self.controllers[meta.get("namespace", ""), one["kind"], meta["name"]] = msgspec.convert(
                one, WELL_KNOWN[one["kind"]]
            )

    # ── a run ──

    def play(self) -> str | None:
        run, expect = self.case["run"], self.case["expect"]
        expected_at = {entry["tick"]: entry for entry in expect["at"]}
        events: dict[int, list[dict[str, Any]]] = {}
        for event in self.case["events"]:
            events.setdefault(event["tick"], []).append(event)
        series = _series(self.case)
        for tick in range(run["count"]):
            now = Instant(self.epoch + tick * run["every"] * _NS)
            self.writes = []
            failed = False
            for event in events.get(tick, []):
                failed |= bool(event.get("metricsError"))
                self.event(event)
            samples = None if failed else self.samples(series, tick, Instant(now - run.get("lag", 0) * _NS))
            self.tick(now, samples)
            if tick in expected_at and (found := self.compare(expected_at[tick])):
                return found
        # Upstream asks no more once an answer cannot be read.
        asked = expect.get("queries") or []
        return difference("queries", asked, self.queries()[: len(asked)])

    def event(self, event: dict[str, Any]) -> None:
        self.set_controllers(event.get("setControllers", []))
        for one in event.get("deleteControllers", []):
            self.controllers.pop(
                (one["metadata"].get("namespace", ""), one["kind"], one["metadata"]["name"]), None
            )
        for vpa in event.get("setVpas", []):
            key = vpa["metadata"].get("namespace", ""), vpa["metadata"]["name"]
            old = self.vpas.get(key, {})
            self.vpas[key] = vpa | ({"status": old["status"]} if "status" in old else {})
        for name in event.get("deleteVpas", []):
            self.vpas.pop(tuple(name.split("/")), None)
        for pod in event.get("setPods", []):
            key = pod["metadata"].get("namespace", ""), pod["metadata"]["name"]
            if key in self.pods:
                old, new = (msgspec.convert(one, Pod) for one in (self.pods[key], pod))
                self.ooms += ooms_of_update(old, new)
            self.pods[key] = pod
        for name in event.get("deletePods", []):
            self.pods.pop(tuple(name.split("/")), None)
        for one in event.get("evictionEvents", []):
            self.ooms += ooms_of_event(msgspec.convert(one, Event))
        if event.get("restart"):
            self.state, self.fresh = State(self.settings), True
            self.ooms = []
            self.reported = {"vpas": set(), "pods": set()}

    def samples(self, series: dict[str, list[Any]], tick: int, at: Instant) -> Samples:
        names, first, containers, cpu, memory = [], [0], [], [], []
        for pod, entries in series.items():
            here = []
            for name, begin, cpus, memories in entries:
                place = tick - begin
                values = [column[place] if 0 <= place < len(column) else None for column in (cpus, memories)]
                if values != [None, None]:
                    here.append((name, *values))
            if here:
                names.append(tuple(pod.split("/")))
                containers += [name for name, _, _ in here]
                cpu += [value or 0 for _, value, _ in here]
                memory += [value or 0 for _, _, value in here]
                first.append(len(containers))
        return Samples(
            namespaces=tuple(name[0] for name in names),
            names=tuple(name[1] for name in names),
            times=np.full(len(names), at, np.int64),
            first=np.array(first, np.int64),
            containers=tuple(containers),
            cpu=np.array([_int64(value) for value in cpu], np.int64),
            memory=np.array([_int64(value) for value in memory], np.int64),
        )

    def tick(self, now: Instant, samples: Samples | None) -> None:
        self.state.apply(self.delta(now, samples))
        commands = decide(self.state, now)
        self.carry_out(commands, checkpoints(self.state, commands.checkpoints, now))
        absorb(self.state, commands, Outcomes(), now)

    def delta(self, now: Instant, samples: Samples | None) -> Delta:
        known = Controllers(lambda *key: self.controllers.get(key), _no_scale)
        vpas = [msgspec.convert(one, VerticalPodAutoscaler) for one in self.vpas.values()]
        pods = [msgspec.convert(one, Pod) for one in self.pods.values()]
        checkpoints = [
            checkpoint_view(msgspec.convert(one, VerticalPodAutoscalerCheckpoint))
            for one in self.checkpoints.values()
        ]
        load = checkpoints if self.fresh and self.settings.uses_checkpoints else []
        history = () if not self.fresh or self.settings.uses_checkpoints else self.history()
        self.fresh = False
        ooms, self.ooms = self.ooms, []
        deleted = {name: self.reported[name] - set(getattr(self, name)) for name in self.reported}
        self.reported = {name: set(getattr(self, name)) for name in self.reported}
        return Delta(
            at=now,
            vpas=[
                vpa_view(vpa, read_target(vpa.metadata.namespace, vpa.spec.target_ref, known)) for vpa in vpas
            ],
            gone_vpas=sorted(deleted["vpas"]),
            statuses=[StatusView(vpa.metadata.namespace, vpa.metadata.name, vpa.status) for vpa in vpas],
            checkpoints=checkpoints,
            load=load,
            history=history,
            pods=[pod_view(pod) for pod in pods],
            gone_pods=sorted(deleted["pods"]),
            samples=samples,
            ooms=ooms,
        )

    def history(self) -> Any:
        answers = self.case["history"]
        columns = [
            msgspec.convert(answers.get(name) or [], tuple[Series, ...])
            for name in ("cpu", "memory", "labels")
        ]
        try:
            return read_history(self.history_settings(), *columns)
        except HistoryError:
            return ()

    def history_settings(self) -> HistorySettings:
        names = {field.name for field in msgspec.structs.fields(HistorySettings)}
        flags = {flag.replace("-", "_"): text for flag, text in self.case["flags"].items()}
        return HistorySettings(**{name: text for name, text in flags.items() if name in names})

    def queries(self) -> list[dict[str, Any]]:
        found = []
        for query in queries(self.history_settings(), self.settings.vpa_object_namespace, self.epoch):
            if query.start is None:
                found.append({"kind": "query", "query": query.query, "time": format_rfc3339(query.end)})
            else:
                found.append(
                    {
                        "kind": "query_range",
                        "query": query.query,
                        "start": format_rfc3339(query.start),
                        "end": format_rfc3339(query.end),
                        "step": "1h0m0s",
                    }
                )
        return found

    def carry_out(self, commands: Commands, written: Iterable[CheckpointView]) -> None:
        for write in commands.statuses:
            key = write.namespace, write.name
            self.vpas[key] = self.vpas[key] | {"status": msgspec.json.decode(write.status)}
            self.writes.append(f"patch verticalpodautoscalers/status {write.namespace}/{write.name}")
        for one in written:
            key = one.namespace, one.name
            if key not in self.checkpoints:
                self.writes.append("create verticalpodautoscalercheckpoints")
            self.checkpoints[key] = {
                "metadata": {"namespace": one.namespace, "name": one.name},
                "spec": {"vpaObjectName": one.vpa, "containerName": one.container},
                "status": _json(one.status),
            }
            self.writes.append(f"patch verticalpodautoscalercheckpoints {one.namespace}/{one.name}")
        for namespace, name in commands.deletions:
            del self.checkpoints[namespace, name]
            self.writes.append(f"delete verticalpodautoscalercheckpoints {namespace}/{name}")

    # ── the record ──

    def compare(self, entry: dict[str, Any]) -> str | None:
        state, where = self.state, f"tick {entry['tick']}"
        found = {
            "aggregateStates": state.aggregate_count(),
            "trackedPods": len(state.pods),
            "podCount": {"/".join(key): state.pod_count(state.vpas[key]) for key in state.vpas},
            "vpas": {"/".join(key): vpa.get("status") or {} for key, vpa in self.vpas.items()},
            "checkpoints": {
                "/".join(key): {"spec": one["spec"], "status": one["status"]}
                for key, one in self.checkpoints.items()
            },
            "writes": sorted(self.writes),
        }
        required = {name: entry[name] for name in found}
        if entry.get("tie"):
            for side in (required, found):
                for status in side["vpas"].values():
                    status.pop("recommendation", None)
            required["writes"] = found["writes"]
        return difference(where, _plain(required), _near(_plain(required), _plain(found)))


def _no_scale(key: ControllerKey) -> Any:
    raise TargetError(f"{key.kind} {key.namespace}/{key.name} has no scale")


def _series(case: Case) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for one in case["series"]:
        found.setdefault(one["pod"], []).append(
            (one["container"], one["first"], one.get("cpu") or [], one.get("mem") or [])
        )
    return found


def _int64(value: int) -> int:
    return max(min(value, (1 << 63) - 1), -(1 << 63))


def _json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def _plain(value: Any) -> Any:
    """Leave out what says nothing: nulls, and sums and counts that are 0."""
    if isinstance(value, dict):
        empty = [key for key in ("totalWeight", "totalSamplesCount", "version") if not value.get(key)]
        return {key: _plain(one) for key, one in value.items() if one is not None and key not in empty}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _near(required: Any, found: Any) -> Any:
    if isinstance(required, dict) and isinstance(found, dict):
        return {key: _near(required.get(key), one) for key, one in found.items()}
    if isinstance(required, list) and isinstance(found, list) and len(required) == len(found):
        return [_near(a, b) for a, b in zip(required, found, strict=True)]
    floats = isinstance(found, float) and isinstance(required, float | int)
    return required if floats and math.isclose(required, found, rel_tol=1e-9) else found
