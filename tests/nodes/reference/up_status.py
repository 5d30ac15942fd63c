"""What a scale-up reports."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.expanders import Choice
from tests.nodes.reference.places import pod_key
from tests.nodes.reference.similar import Resize
from tests.nodes.reference.world import Json


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

    def as_recorded(self) -> Json:
        """The entry of `scaleUpStatuses`, without what is empty; lists of names are sorted."""
        entry: Json = {
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
        return {"result": self.result, **_filled(entry)}


def _filled(entry: Json) -> Json:
    return {name: value for name, value in entry.items() if value}


def _name(pod: Json) -> str:
    return "/".join(pod_key(pod))


def _names(pods: list[Json]) -> list[str]:
    return sorted(map(_name, pods))
