"""A walk through a town by kubectl, whichever controller of HPAs works there.

Each of its steps ends with a scene: what kubectl and the API say once everything has settled.
"""

from __future__ import annotations

import asyncio
import re
from datetime import datetime, timedelta
from typing import NamedTuple

from tests.plane.running import Plane
from tests.plane.towns import Town
from tools.plane.build import find

from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, HPAS

PERIOD = ("--horizontal-pod-autoscaler-sync-period=1s",)
TIMES = (
    *PERIOD,
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
    "--feature-gates=HPAScaleToZero=true",
)
"""Flags that both controllers take."""

COMPUTED = "FailedComputeMetricsReplicas"
"""Why nothing came of the metrics, of an event."""

# Not the ``reportingInstance``: that distinguishes ours from upstream's.
_OF_EVENTS = ("type", "reason", "message", "source", "reportingComponent", "action")


class Scene(NamedTuple):
    """The visible state, without times and with ``HOME`` for the namespace.

    Attributes:
        shown: The columns of ``kubectl get hpa`` but the age.
        described: ``kubectl describe hpa``.
        status: Of the HPA.
        events: About it, each with the fields that distinguish it from the others.
    """

    shown: list[str]
    described: str
    status: Json
    events: list[Json]


async def kubectl(plane: Plane, *arguments: str) -> str:
    """Return what kubectl prints. Raises AssertionError with what it says when it fails.

    This process serves APIs that kubectl reads, so it must not block in the meantime.
    """
    process = await asyncio.create_subprocess_exec(
        str(find("kubectl")),
        f"--kubeconfig={plane.kubeconfig}",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    return out.decode()


class Walk:
    """One walk in a town: types commands, waits, and records scenes.

    Attributes:
        scenes: By name, in order.
        passing: Reasons of events that come or not as luck will have it; they are left out. A status that
            the controller writes just when somebody changes the spec is refused.
    """

    def __init__(self, place: Town) -> None:
        self.place = place
        self.scenes: dict[str, Scene] = {}
        self.passing = {"FailedUpdateStatus"}

    async def kubectl(self, *arguments: str) -> str:
        """Return what kubectl prints in the town's namespace. Raises AssertionError with what it says when it fails."""
        return await kubectl(self.place.plane, f"--namespace={self.place.home}", *arguments)

    async def scene(
        self, name: str, hpa: str, shown: str, *reasons: str, says: str = "", reported: str = ""
    ) -> None:
        """Wait until kubectl shows this row and the conditions have these reasons, and record the scene.

        Args:
            name: The scene's.
            hpa: Its name.
            shown: The row of ``kubectl get hpa`` without the name and the age.
            reasons: Of the first conditions, in order. A rescale adds ScaledToZero to all walks, as the gate is on.
            says: What the message of a condition must have, too.
            reported: What the message of an event must have, too.
        """
        expected_row = [hpa, *re.split(r"\s{2,}", shown)]
        deadline = self.place.deadline()
        while not isinstance(
            found := await self._look(hpa, expected_row, list(reasons), says, reported), Scene
        ):
            in_time = self.place.clock.monotonic() < deadline
            assert in_time, f"{name}: {found} in place of {expected_row} {reasons} {says} {reported}"
            await self.place.pause()
        self.scenes[name] = found

    async def _look(
        self, hpa: str, expected_row: list[str], reasons: list[str], says: str, reported: str
    ) -> Scene | object:
        """Return the scene if it is as expected, else the differing part."""
        status, scaled = await self._status(hpa)
        conditions = status.get("conditions", [])
        found = [one["reason"] for one in conditions]
        if found[: len(reasons)] != reasons or says not in str(conditions):
            return conditions
        shown = re.split(r"\s{2,}", (await self.kubectl("get", "hpa", hpa, "--no-headers")).strip())[:-1]
        if shown != expected_row:
            return shown
        events, last_seen = await self._events(hpa)
        failed = [one for one in conditions if one["reason"] not in self.passing]
        if reported not in str(events) or not _all_reported(failed, events):
            return events
        if not _rescale_reported(status, scaled, last_seen):
            return last_seen
        described = await self.kubectl("describe", "hpa", hpa)
        # It has not gone on in the meantime, and no event came late.
        (status_now, _), (events_now, _) = await self._status(hpa), await self._events(hpa)
        if (status_now, events_now) != (status, events):
            return status_now, events_now
        return Scene(shown, self._plain(described), status, events)

    async def _status(self, hpa: str) -> tuple[Json, str]:
        """Return the status without times, and when the HPA last rescaled ("" where it never did)."""
        found = await self.place.cluster.get(HPAS.untyped, hpa, namespace=self.place.home)
        status = found.get("status", {})
        scaled = status.pop("lastScaleTime", "")
        for condition in status.get("conditions", []):
            del condition["lastTransitionTime"]
            condition["message"] = self._named(condition["message"])
        return status, scaled

    async def _events(self, hpa: str) -> tuple[list[Json], dict[str, str]]:
        """Return the events about an HPA, and when each message was last reported."""
        found = await self.place.cluster.list(EVENTS.untyped, namespace=self.place.home)
        found_events, last_seen = [], {}
        for event in found.items:
            about = event["involvedObject"]
            if (about["kind"], about["name"]) == (HPAS.kind, hpa) and event["reason"] not in self.passing:
                said = {name: event.get(name) for name in _OF_EVENTS}
                said |= {"message": self._named(event["message"]), "apiVersion": about["apiVersion"]}
                found_events.append(said)
                last_seen[said["message"]] = event["lastTimestamp"]
        return sorted(found_events, key=str), last_seen

    def _named(self, text: str) -> str:
        """Give names that are drawn at random another one."""
        return re.sub(r"(?<= of Pod )[\w-]+", "POD", text.replace(self.place.home, "HOME"))

    def _plain(self, described: str) -> str:
        """Take out what no two runs have in common: times, and how often and in which order events came."""
        reported: list[str] = []
        events: list[str] = []
        for line in self._named(described).splitlines():
            if line.startswith(("  Normal", "  Warning")):
                kind, reason, _, source, text = re.split(r"\s{2,}", line.strip(), maxsplit=4)
                if reason not in self.passing:
                    events.append(f"  {kind}  {reason}  {source}  {text}")
            elif not line.startswith("CreationTimestamp:"):
                reported.append(re.sub(r"(?<=\S)(\s{2,}|\t+)", "  ", line).rstrip())
        if not events and "Events:" in reported:
            # Without a heading where all were left out, as where there were none.
            reported = [*reported[: reported.index("Events:")], "Events:  <none>"]
        return "\n".join([*reported, *sorted(events)])


def _rescale_reported(status: Json, scaled: str, last_seen: dict[str, str]) -> bool:
    """Whether the event of the last rescale is there: both controllers write events beside the status.

    The event's time is just before that of the status. Both are in whole seconds, so they may differ by up to two.
    """
    reasons = {one["reason"] for one in status.get("conditions", [])}
    if not scaled or "ScalingDisabled" in reasons:
        return True
    since = datetime.fromisoformat(scaled) - timedelta(seconds=2)
    size = f"New size: {status['desiredReplicas']};"
    return any(
        message.startswith(size) and datetime.fromisoformat(seen) >= since
        for message, seen in last_seen.items()
    )


def _all_reported(conditions: list[Json], events: list[Json]) -> bool:
    """Whether the events are there that come with failures: each is written beside the status, not before it.

    A metric that fails has two, its own and the one of the computation that lacks it.
    """
    reported = [(event["reason"], event["message"]) for event in events]
    for condition in conditions:
        reason, failure = condition["reason"], condition["message"]
        if not reason.startswith("Failed"):
            continue
        # "the HPA was unable to ...: ERROR", as the event has only the error.
        errors = [message for _, message in reported if failure.endswith(f": {message}")]
        if not errors:
            return False
        if reason.endswith("Metric") and not any(
            other == COMPUTED and message.endswith(f": {errors[0]}") for other, message in reported
        ):
            return False
    return True
