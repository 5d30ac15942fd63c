"""What a scale-up reports, and the events that follow from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.nodes.replay.expanders import Choice
from tests.nodes.replay.similar import Resize
from tests.nodes.replay.snapshot import pod_key
from tests.nodes.replay.world import Json


@dataclass
class Remaining:
    """A pod that no group can help now, with reasons by group."""

    pod: Json
    rejected: dict[str, list[str]] = field(default_factory=dict)
    skipped: dict[str, list[str]] = field(default_factory=dict)


@dataclass
class UpStatus:
    """The status of one attempt. `increases` and `refused_increases` are the calls of the cloud, in order."""

    result: str
    error: tuple[str, str] | None = None  # type, message
    infos: list[Resize] = field(default_factory=list)
    triggered: list[Json] = field(default_factory=list)
    remaining: list[Remaining] = field(default_factory=list)
    awaiting: list[Json] = field(default_factory=list)
    considered: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    increases: list[Json] = field(default_factory=list)
    refused_increases: list[Json] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    """Type, reason and message of events on the status object."""

    def told(self) -> Json:
        """The entry of `scaleUpStatuses`, without what is empty; lists of names are sorted."""
        told: Json = {
            "error": {"type": self.error[0], "message": self.error[1]} if self.error else None,
            "scaleUpInfos": [
                {"group": one.group, "currentSize": one.current, "newSize": one.new, "maxSize": one.max}
                for one in sorted(self.infos, key=lambda one: one.group)
            ],
            "podsTriggeredScaleUp": _names(self.triggered),
            "podsRemainUnschedulable": [
                _filled({"pod": _name(one.pod), "rejected": one.rejected, "skipped": one.skipped})
                for one in sorted(self.remaining, key=lambda one: _name(one.pod))
            ],
            "podsAwaitEvaluation": _names(self.awaiting),
            "consideredNodeGroups": sorted(self.considered),
            "failedResizeNodeGroups": sorted(self.failed),
        }
        return {"result": self.result, **_filled(told)}


def _filled(told: Json) -> Json:
    return {name: value for name, value in told.items() if value}


def _name(pod: Json) -> str:
    return "/".join(pod_key(pod))


def _names(pods: list[Json]) -> list[str]:
    return sorted(map(_name, pods))


def pod_events(status: UpStatus) -> list[tuple[Json, str, str]]:
    """Return the events on pods: pod, reason, message. All are of type Normal; parts of a message are sorted."""
    events = []
    if status.result not in ("ScaleUpSuccessful", "ScaleUpError"):
        for one in status.remaining:
            reasons = _why_not(status, one)
            events.append((one.pod, "NotTriggerScaleUp", f"pod didn't trigger scale-up: {reasons}"))
    if status.infos:
        plan = " ".join(f"{{{one.group} {one.current}->{one.new} (max: {one.max})}}" for one in status.infos)
        events += [(pod, "TriggeredScaleUp", f"pod triggered scale-up: [{plan}]") for pod in status.triggered]
    return events


def _why_not(status: UpStatus, one: Remaining) -> str:
    """How many of the groups that were considered have each reason."""
    if status.result == "ScaleUpLimitedByMaxNodesTotal":
        return "max total nodes in cluster reached"
    counts: Counter[str] = Counter()
    for reasons in (one.rejected, one.skipped):
        for group, each in reasons.items():
            if group in status.considered:
                counts.update(each)
    return ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
