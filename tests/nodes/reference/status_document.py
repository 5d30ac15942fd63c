"""The document that a loop leaves in the status ConfigMap."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.nodes.reference.registry import Readiness, Registry
from tests.nodes.reference.world import Group, Json, World

from kubetide.units.time import Instant, format_rfc3339

MOST_OF_A_MESSAGE = 500
CUT = "<truncated>"


@dataclass
class StatusDocument:
    """What was written last, which says since when a condition holds, and the candidates of the last evaluation."""

    last: Json = field(default_factory=dict)
    candidates: dict[str, int] = field(default_factory=dict)
    evaluated: int | None = None

    def note_candidates(self, world: World, names: list[str], now: int) -> None:
        """Count the unneeded nodes of each group; upstream does so after each evaluation."""
        self.candidates, self.evaluated = {}, now
        for name in names:
            group = world.group_of_node(world.nodes[name])
            if group is not None:
                self.candidates[group.id] = self.candidates.get(group.id, 0) + 1

    def written(self, world: World, registry: Registry, waiting_for: str = "") -> Json:
        """Return the document of a loop at its end, or of one that did not begin because nodes are missing."""
        if waiting_for:
            return _initializing(waiting_for, world.now)
        before = {one["name"]: one for one in self.last.get("nodeGroups", ())}
        groups = [
            self._group(registry, group, world.now, before.get(group.id, {}))
            for _, group in sorted(world.groups.items())
        ]
        whole = self.last.get("clusterWide", {})
        probed = _text(world.now)
        in_progress = any(one["scaleUp"]["status"] == "InProgress" for one in groups)
        health = _health(registry.is_cluster_healthy())
        scale_up = "InProgress" if in_progress else "NoActivity"
        self.last = {
            "time": _spaced(world.now),
            "autoscalerStatus": "Running",
            "clusterWide": {
                "health": {"nodeCounts": _counts(registry.total), **_since(whole, "health", health, probed)},
                "scaleUp": _since(whole, "scaleUp", scale_up, probed),
                "scaleDown": self._scale_down(sum(self.candidates.values()), whole),
            },
            "nodeGroups": groups,
        }
        return self.last

    def _group(self, registry: Registry, group: Group, now: int, before: Json) -> Json:
        readiness = registry.readiness.get(group.id)
        probed = _text(now) if readiness is not None else None
        health = _health(registry.is_group_healthy(group.id))
        scale_up, backoff = _scale_up(registry, group.id, now)
        return {
            "name": group.id,
            "health": {
                "nodeCounts": _counts(readiness or Readiness()),
                "cloudProviderTarget": registry.targets.get(group.id, 0),
                "minSize": group.min,
                "maxSize": group.max,
                **_since(before, "health", health, probed),
            },
            "scaleUp": {"backoffInfo": backoff, **_since(before, "scaleUp", scale_up, probed)},
            "scaleDown": self._scale_down(self.candidates.get(group.id, 0), before),
        }

    def _scale_down(self, count: int, before: Json) -> Json:
        probed = None if self.evaluated is None else _text(self.evaluated)
        status = "CandidatesPresent" if count else "NoCandidates"
        entry = _since(before, "scaleDown", status, probed)
        return {**entry, "candidates": count} if count else entry


def _text(time: int) -> str:
    return format_rfc3339(Instant(time))


def _spaced(time: int) -> str:
    return _text(time).replace("T", " ").replace("Z", " +0000 UTC")


def _initializing(message: str, now: int) -> Json:
    """A document that says nothing of the cluster; it does not count as the last one."""
    unknown: Json = {"lastProbeTime": None, "lastTransitionTime": None}
    return {
        "time": _spaced(now),
        "autoscalerStatus": "Initializing",
        "message": message,
        "clusterWide": {
            "health": {"nodeCounts": _counts(Readiness()), **unknown},
            "scaleUp": unknown,
            "scaleDown": unknown,
        },
    }


def _health(healthy: bool) -> str:
    return "Healthy" if healthy else "Unhealthy"


def _since(before: Json, name: str, status: str, probed: str | None) -> Json:
    """The condition's status and times. It holds since when it was first probed so, which may be never."""
    former = before.get(name, {})
    since = former.get("lastTransitionTime") if former.get("status") == status else probed
    return {"status": status, "lastProbeTime": probed, "lastTransitionTime": since}


def _scale_up(registry: Registry, group: str, now: int) -> tuple[str, Json]:
    if registry.is_scaling_up(group):
        return "InProgress", {}
    if not registry.is_group_healthy(group):
        return "Unhealthy", {}
    backoff = registry.backoff(group, now)
    if backoff is None:
        return "NoActivity", {}
    code, message = backoff
    if len(message) > MOST_OF_A_MESSAGE:
        message = message[: MOST_OF_A_MESSAGE - len(CUT)] + CUT
    return "Backoff", {"errorCode": code, "errorMessage": message}


def _counts(readiness: Readiness) -> Json:
    registered = {
        "total": len(readiness.registered),
        "ready": len(readiness.ready),
        "notStarted": len(readiness.not_started),
        "suspended": len(readiness.suspended),
        "unready": {"total": len(readiness.unready), "resourceUnready": len(readiness.resource_unready)},
    }
    if readiness.deleted:
        registered["beingDeleted"] = len(readiness.deleted)
    return {
        "registered": registered,
        "longUnregistered": len(readiness.long_unregistered),
        "unregistered": len(readiness.unregistered),
    }
