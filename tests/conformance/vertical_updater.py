"""The updater component of the vertical suite: loops of one updater, the actions and events of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.vertical_world import limit_ranges_of, vpas_of, workloads_of

from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339, seconds, to_seconds
from kubetide.vertical.flags import read_flags
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.decision import Command, Evict, Outcome, Result
from kubetide.vertical.updater.settings import Settings
from kubetide.vertical.updater.state import Delta, LeaseView, State

_SYSTEM = "kube-system"
_RENEWED_BEFORE = seconds(10)


def _whole(pod: Any) -> Pod:
    return msgspec.convert(pod, Pod)


def first_difference(case: Case, *, make_pod: Callable[[Any], Pod] = _whole) -> str | None:
    player = Player(case, make_pod)
    recorded = case["expect"]
    for number, step in enumerate(case.get("rounds") or [{}]):
        found = player.round(step)
        if recorded.get("panic"):
            # Upstream dies; ours decides for the other pods all the same.
            continue
        for name in ("actions", "events", "infeasible"):
            inner = difference(f"round {number}: {name}", recorded["rounds"][number][name], found[name])
            if inner:
                return inner
    return None


class Player:
    """One updater through the loops of a case; ``result`` is what the last loop came to."""

    def __init__(self, case: Case, make_pod: Callable[[Any], Pod] = _whole) -> None:
        self.make_pod = make_pod
        # The recordings are of 1.8.0, whose rules differ in three places.
        self.settings = read_flags(Settings, {**(case.get("flags") or {}), "compatibility": "1.8.0"})
        self.now = parse_rfc3339(case["now"])
        self.lease = case.get("lease")
        self.step: Case = {}
        self.actions: list[dict[str, Any]] = []
        self.result = Result()
        ranges = limit_ranges_of(case)
        self.state = State.from_full(
            Delta(
                settings=self.settings,
                vpas=vpas_of(case),
                pods=[make_pod(pod) for pod in case.get("pods") or ()],
                workloads=tuple(workloads_of(case).values()),
                limit_ranges=[one for namespace in ranges for one in ranges[namespace]],
            )
        )

    def round(self, step: Case) -> dict[str, Any]:
        """Play one loop; return what it did and said."""
        self.step, self.actions = step, []
        if step.get("advance"):
            self.now = Instant(self.now + seconds(step["advance"]))
            if self.lease:
                renewed = format_rfc3339(Instant(self.now - _RENEWED_BEFORE))
                self.lease["spec"]["renewTime"] = renewed
        self.state.apply(
            Delta(
                vpas=[msgspec.convert(one, VerticalPodAutoscaler) for one in step.get("setVpas") or ()],
                pods=[self.make_pod(pod) for pod in step.get("setPods") or ()],
                gone_pods=[tuple(name.split("/")) for name in step.get("deletePods") or ()],
                lease=self._lease(),
            )
        )
        _, result = decide(self.state, self.now, self._answer)
        self.result = result
        return {
            "actions": sorted(self.actions, key=lambda one: one["pod"].split("/")[0]),
            "events": _events(result),
            "infeasible": sorted(self.state.memory.infeasible),
        }

    def _lease(self) -> LeaseView | None:
        settings, lease = self.settings, self.lease
        if lease is None:
            return None
        meta = lease["metadata"]
        home = settings.admission_controller_status_lease_namespace or _SYSTEM
        if (meta["namespace"], meta["name"]) != (home, settings.admission_controller_status_lease_name):
            return None
        return LeaseView(meta.get("creationTimestamp"), (lease.get("spec") or {}).get("renewTime"))

    def _answer(self, command: Command) -> Outcome:
        pod = "/".join(command.pod)
        at = {"pod": pod, "t": _number(to_seconds(command.due - self.now))}
        if isinstance(command, Evict):
            refused = (self.step.get("evictionErrors") or {}).get(pod)
            error = {"error": refused} if refused else {}
            self.actions.append({"action": "evict", **at, **error})
            return Outcome(command.due, str(refused or ""))
        refused = (self.step.get("resizeErrors") or {}).get(pod)
        self._patched(at, "resize", command.resources, refused)
        if refused:
            return Outcome(command.due, refused, node_capacity=refused == "NodeCapacity")
        self._patched(at, "", command.annotations, None)
        return Outcome(command.due)

    def _patched(self, at: dict[str, Any], subresource: str, patch: Any, error: str | None) -> None:
        ops = sorted(json.loads(json.dumps(list(patch))), key=lambda op: op["path"])
        action = {"action": "patch", **at, "patch": ops, "subresource": subresource}
        self.actions.append(action | ({"error": error} if error else {}))


def _number(value: float) -> float | int:
    return int(value) if value == int(value) else value


def _events(result: Result) -> list[dict[str, Any]]:
    return [
        {
            "kind": note.kind,
            "object": f"{note.namespace}/{note.name}",
            "type": "Normal",
            "reason": note.reason,
            "message": note.message,
        }
        for note in result.events
    ]
