"""Alibaba's and TKEStack's cases: the production core against a scripted cluster."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.schedules_cases.intended import PLURALS, instant, intended, text_of
from tests.conformance.schedules_cases.rules import rule_of

from kubetide.schedules.decide import absorb, decide, next_due, targets_due
from kubetide.schedules.decision import Outcome, Run
from kubetide.schedules.kinds.base import is_hpa
from kubetide.schedules.kinds.registry import MODES
from kubetide.schedules.settings import Settings
from kubetide.schedules.state import State
from kubetide.schedules.tables import Delta, HpaView, Target, View
from kubetide.schedules.warnings import INVALID
from kubetide.units.time import Instant

_NS = 1_000_000_000
_NOT_FOUND = re.compile(r"(, err is|,because of) [^,]* not found$")
_SCALED = {
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("stable.example.com", "Game"),
    ("", "ReplicationController"),
}
_PLURALS = {
    **PLURALS,
    "ReplicationController": "replicationcontrollers",
    "HorizontalPodAutoscaler": "horizontalpodautoscalers",
}


class World:
    """Objects, workloads and HPAs, and what is done to them."""

    def __init__(self, case: Case, kind: str) -> None:
        given = case["input"]
        self.mode, self.given = MODES[kind], given
        self.workloads: dict[str, int] = dict(given.get("workloads") or {})
        self.hpas = {name: dict(one) for name, one in (given.get("hpas") or {}).items()}
        self.fails = given.get("fail_first_scale_updates") or 0
        self.objects: dict[str, Any] = {}
        self.writes: list[Any] = []
        self.events: list[Any] = []
        self.own_events: list[Any] = []
        self.dirty: set[str] = set()
        self.deleted: set[str] = set()
        self.made = 0
        self.state: State | None = None
        self.boot()

    def boot(self) -> None:
        self.state = State(Settings(schedules_zone=self.given["process_zone"]))
        self.dirty = set(self.objects)

    def put(self, one: Any, now: int) -> None:
        """Create an object or replace its spec."""
        old = self.objects.get(one["name"])
        reference = {
            "apiVersion": one["target_apiVersion"],
            "kind": one["target_kind"],
            "name": one["target_name"],
        }
        spec: Any = {"scaleTargetRef": reference}
        for name in ("jobs", "crons", "excludeDates"):
            if one.get(name) is not None:
                spec[name] = one[name]
        status: Any = {"lastScheduleTime": one["lastScheduleTime"]} if one.get("lastScheduleTime") else {}
        self.made += 1
        self.objects[one["name"]] = {
            "metadata": {
                "name": one["name"],
                "namespace": "web",
                "uid": old["metadata"]["uid"] if old else str(self.made),
                "creationTimestamp": old["metadata"]["creationTimestamp"]
                if old
                else one.get("creationTimestamp") or text_of(now),
            },
            "spec": spec,
            "status": old["status"] if old else status,
        }
        self.dirty.add(one["name"])
        self.deleted.discard(one["name"])

    def view(self, target: Target) -> View:
        """Read a target as a cluster would."""
        if target.api_version.count("/") > 1:
            return View(
                target, error=f"unexpected GroupVersion string: {target.api_version}", stage="version"
            )
        if is_hpa(target):
            found = self.hpas.get(target.name)
            if found is None:
                return View(target, error=f"horizontalpodautoscalers/{target.name} not found", stage="get")
            own = Target(found["target_apiVersion"], found["target_kind"], "web", found["target_name"])
            scale = self.view(own)
            hpa = HpaView(found["minReplicas"], found["maxReplicas"], found["currentReplicas"], own)
            if scale.error:
                text, stage = scale.error, scale.stage
                if stage == "kind":
                    text = f"no matches for {own.api_version.rpartition('/')[0]}/, Resource={own.kind}"
                return View(target, error=text, stage=f"hpa-{stage}")
            return View(target, scale.replicas, hpa=hpa)
        group = target.api_version.rpartition("/")[0]
        if (group, target.kind) not in _SCALED:
            return View(target, error=f'no matches for kind "{target.kind}" in group "{group}"', stage="kind")
        name = f"{_PLURALS[target.kind]}/{target.name}"
        if name not in self.workloads:
            return View(target, error=f"{name} not found", stage="get")
        return View(target, self.workloads[name])

    def act(self, run: Run, at: str) -> Outcome:
        change = run.change
        if change.minimum is not None or change.maximum is not None:
            hpa = self.hpas[run.target.name]
            hpa.update(minReplicas=change.minimum, maxReplicas=change.maximum)
            self.writes.append(
                {
                    "at": at,
                    "kind": "hpa",
                    "name": run.target.name,
                    "minReplicas": change.minimum,
                    "maxReplicas": change.maximum,
                }
            )
        if change.error or change.replicas is None:
            return Outcome()
        name = f"{_PLURALS[change.workload.kind]}/{change.workload.name}"
        failed = self.fails > 0
        self.fails -= failed
        kind = "scale_failed" if failed else "scale"
        self.writes.append({"at": at, "kind": kind, "name": name, "replicas": change.replicas})
        if failed:
            return Outcome("conflict")
        self.workloads[name] = change.replicas
        return Outcome()

    def tick(self, now: int) -> None:
        state = self.state
        if state is None:
            return
        at, clock = text_of(now), Instant(now * _NS)
        kind = self.mode.kind
        tables = tuple(
            self.mode.read(msgspec.convert(self.objects[name], kind.model)) for name in sorted(self.dirty)
        )
        deleted = tuple((kind.kind, "web", name) for name in sorted(self.deleted))
        self.dirty, self.deleted = set(), set()
        state.apply(Delta(tables=tables, gone=deleted))
        state.apply(Delta(views=tuple(self.view(target) for target in targets_due(state, clock))))
        commands = decide(state, clock)
        outcomes = [self.act(run, at) for run in commands.runs]
        result = absorb(state, commands, outcomes, clock)
        for (_, _, name), raw in result.statuses:
            self.objects[name]["status"].update(msgspec.json.decode(raw))
        for notice in result.notices:
            event = {
                "at": at,
                "object": notice.table[2],
                "type": notice.level,
                "reason": notice.reason,
                "message": notice.message,
            }
            (self.own_events if notice.reason == INVALID else self.events).append(event)

    def step(self, step: Any, now: int) -> None:
        match step["op"]:
            case "apply":
                self.put(step["object"], now)
            case "delete":
                self.objects.pop(step["name"], None)
                self.deleted.add(step["name"])
            case "controller_down":
                self.state = None
            case "controller_up":
                self.boot()
            case "hpa_current":
                self.hpas[step["name"]]["currentReplicas"] = step["n"]
            case "workload":
                self.workloads[step["name"]] = step["n"]


def _play(case: Case, kind: str, *, grid: int) -> tuple[World, Any]:
    """Play a case; returns the world and the conditions after submission."""
    given = case["input"]
    world = World(case, kind)
    start, until = instant(given["start"]), instant(given["until"])
    steps = sorted(given.get("steps") or [], key=lambda step: instant(step["at"]))
    for one in given["objects"]:
        world.put(one, start)
    now, submitted = start, None
    while now <= until:
        while steps and instant(steps[0]["at"]) <= now:
            world.step(steps.pop(0), now)
        world.tick(now)
        if submitted is None:
            submitted = _conditions(world)
        due = next_due(world.state) if world.state is not None else None
        following = [-(-due // _NS)] if due is not None else []
        following += [instant(steps[0]["at"])] if steps else []
        if not following:
            break
        following_now = max(min(following), now + 1)
        now = start - (start - following_now) // grid * grid if grid else following_now
        if grid and now >= until:
            break
    return world, submitted


def _conditions(world: World) -> Any:
    fields = ("name", "schedule", "targetSize", "runOnce", "state", "message", "lastProbeTime")
    return {
        name: sorted(
            ({field: one.get(field) for field in fields} for one in found["status"].get("conditions") or []),
            key=lambda one: one["name"],
        )
        for name, found in world.objects.items()
    }


def _without_minimum(case: Case) -> bool:
    return any(one.get("minReplicas") is None for one in (case["input"].get("hpas") or {}).values())


def _is_different(case: Case) -> bool:
    """Whether a rule says what is expected: it reports sizes alone, without HPAs and failed writes."""
    given = case["input"]
    if (case.get("result") or {}).get("panic"):
        return True
    return rule_of(case) is not None and not given.get("hpas") and not given.get("fail_first_scale_updates")


def _difference_from_intended(case: Case, world: World) -> str | None:
    expected = intended(case)
    writes = [(one["at"], one["name"], one["replicas"]) for one in world.writes if one["kind"] == "scale"]
    return difference(
        "intended writes", [list(one) for one in expected.writes], [list(one) for one in writes]
    ) or difference("intended workloads", expected.workloads, world.workloads)


def _said(found: Any) -> Any:
    """Events or conditions without the words of the test double, which said what was not found."""
    if isinstance(found, dict):
        return {key: _said(value) for key, value in found.items()}
    if isinstance(found, list):
        return [_said(one) for one in found]
    return _NOT_FOUND.sub(" ...", found) if isinstance(found, str) else found


def _bounds(hpas: Any) -> Any:
    return {name: {key: one.get(key) for key in ("minReplicas", "maxReplicas")} for name, one in hpas.items()}


def _recorded_difference(pairs: list[tuple[str, Any, Any]]) -> str | None:
    return next((found for name, left, right in pairs if (found := difference(name, left, right))), None)


def alibaba_difference(case: Case) -> str | None:
    """Recorded behaviour, or where a rule holds what is intended."""
    if _without_minimum(case):
        # A real API server fills in 1; without it upstream's job dies and leaves no trace.
        hpas = {name: {**one, "minReplicas": 1} for name, one in case["input"]["hpas"].items()}
        filled, _ = _play(
            {**case, "input": {**case["input"], "hpas": hpas}}, "CronHorizontalPodAutoscaler", grid=0
        )
        bare, _ = _play(case, "CronHorizontalPodAutoscaler", grid=0)
        return difference("writes with minReplicas 1", filled.writes, bare.writes)
    world, submitted = _play(case, "CronHorizontalPodAutoscaler", grid=0)
    if "outcomes" in case:
        finals = [one["final"] for one in case["outcomes"]]
        ours = {
            "workloads": world.workloads,
            "hpas": {
                name: {"minReplicas": one["minReplicas"], "maxReplicas": one["maxReplicas"]}
                for name, one in world.hpas.items()
            },
        }
        same = [one for one in finals if all(ours[name] == one.get(name) for name in ours if name in one)]
        lost = any(state["state"] != "Succeed" for found in _conditions(world).values() for state in found)
        return None if same and not lost else f"outcome: none of {finals} is {ours}"
    result = case["result"]
    if "right" in case:
        runs = [one for one in case["right"] if not one["excluded"]]
        found = difference("right", len(runs), len(world.writes)) or difference(
            "right", sorted(one["at"] for one in runs), sorted(one["at"] for one in world.writes)
        )
        if found:
            return found
    if _is_different(case):
        return _difference_from_intended(case, world)
    return _recorded_difference(
        [
            ("writes", result["writes"], world.writes),
            ("events", _said(result["events"]), _said(world.events)),
            ("workloads", result["workloads"], world.workloads),
            ("hpas", _bounds(result.get("hpas") or {}), _bounds(world.hpas)),
            ("status_after_submit", result["status_after_submit"], submitted),
            ("status", _said(result["status"]), _said(_conditions(world))),
        ]
    )


def tkestack_difference(case: Case) -> str | None:
    """Recorded behaviour, or where a rule holds what is intended."""
    world, _ = _play(case, "CronHPA", grid=10)
    result = case["result"]
    if _is_different(case):
        return _difference_from_intended(case, world)
    events: list[Any] = []
    for one in world.events:
        same = [
            other
            for other in events
            if (other["reason"], other["message"]) == (one["reason"], one["message"])
        ]
        if len(same) < 3:
            events.append({key: one[key] for key in ("at", "type", "reason", "message")})
    last = {name: one["status"].get("lastScheduleTime") for name, one in world.objects.items()}
    writes = [
        {key: one[key] for key in ("at", "name", "replicas")}
        for one in world.writes
        if one["kind"] == "scale"
    ]
    return _recorded_difference(
        [
            ("writes", result["writes"], writes),
            ("events", result["events"], events),
            ("workloads", result["workloads"], world.workloads),
            ("lastScheduleTime", result["lastScheduleTime"], last),
        ]
    )
