"""Walks through what the Kubernetes documentation does with HPAs, typed into kubectl, whichever controller works.

A walk ends each of its steps with a scene: what kubectl and the API say once everything has settled.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from tests.plane.towns import CRON_TABS, ROOT, Town
from tools.plane.build import find

from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, HPAS

EXAMPLES = ROOT / "examples"
PERIOD = ("--horizontal-pod-autoscaler-sync-period=1s",)
TIMES = (
    *PERIOD,
    "--horizontal-pod-autoscaler-downscale-stabilization=2s",
    "--horizontal-pod-autoscaler-cpu-initialization-period=0s",
    "--horizontal-pod-autoscaler-initial-readiness-delay=0s",
    "--feature-gates=HPAScaleToZero=true",
)
"""Flags that both controllers take."""

GOT = "SucceededGetScale"
READY = "ReadyForNewScale"
VALID = "ValidMetricFound"
WITHIN = "DesiredWithinRange"
FEW = "TooFewReplicas"
MANY = "TooManyReplicas"


class Scene(NamedTuple):
    """What is to be seen, without times and with ``HOME`` for the namespace.

    Attributes:
        shown: The columns of ``kubectl get hpa`` but the age.
        described: ``kubectl describe hpa``.
        status: Of the HPA.
        events: About it, each with what tells it from the others.
    """

    shown: list[str]
    described: str
    status: Json
    events: list[Json]


class Walk:
    """One walk in a town: types commands, waits, and keeps scenes."""

    def __init__(self, place: Town) -> None:
        self.place = place
        self.scenes: dict[str, Scene] = {}

    async def kubectl(self, *arguments: str) -> str:
        """Gives what kubectl prints. Raises AssertionError with what it says when it fails."""
        process = await asyncio.create_subprocess_exec(
            str(find("kubectl")),
            f"--kubeconfig={self.place.plane.kubeconfig}",
            f"--namespace={self.place.home}",
            *arguments,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, problems = await process.communicate()
        assert process.returncode == 0, problems.decode()
        return out.decode()

    async def scene(self, name: str, hpa: str, shown: str, *reasons: str, says: str = "") -> None:
        """Waits until kubectl shows this row and the conditions have these reasons, and keeps what there is.

        Args:
            name: The scene's.
            hpa: Its name.
            shown: The row of ``kubectl get hpa`` without the name and the age.
            reasons: Of the first conditions, in order. A rescale adds ScaledToZero to all walks, as the gate is on.
            says: What the message of a condition must have, too.
        """
        wanted = [hpa, *re.split(r"\s{2,}", shown)]
        seen: object = None
        deadline = self.place.deadline()
        while True:
            found = await self._look(hpa, wanted, list(reasons), says)
            if isinstance(found, Scene):
                self.scenes[name] = found
                return
            seen = found
            assert self.place.clock.monotonic() < deadline, f"{name}: {seen} in place of {wanted} {reasons}"
            await self.place.pause()

    async def _look(self, hpa: str, wanted: list[str], reasons: list[str], says: str) -> Scene | object:
        """Gives the scene where it is as wanted, what there is where it is not."""
        status = await self._status(hpa)
        found = [one["reason"] for one in status.get("conditions", [])]
        if found[: len(reasons)] != reasons or says not in str(status):
            return found
        shown = re.split(r"\s{2,}", (await self.kubectl("get", "hpa", hpa, "--no-headers")).strip())[:-1]
        if shown != wanted:
            return shown
        described = await self.kubectl("describe", "hpa", hpa)
        scene = Scene(shown, self._plain(described), status, await self._events(hpa))
        # It has not gone on in the meantime.
        return scene if await self._status(hpa) == status else status

    async def _status(self, hpa: str) -> Json:
        found = await self.place.cluster.get(HPAS.untyped, hpa, namespace=self.place.home)
        status = {name: value for name, value in found.get("status", {}).items() if name != "lastScaleTime"}
        for condition in status.get("conditions", []):
            del condition["lastTransitionTime"]
            condition["message"] = self._named(condition["message"])
        return status

    async def _events(self, hpa: str) -> list[Json]:
        found = await self.place.cluster.list(EVENTS.untyped, namespace=self.place.home)
        kept = []
        for event in found.items:
            about = event["involvedObject"]
            if (about["kind"], about["name"]) == (HPAS.kind, hpa):
                said = {name: event.get(name) for name in _OF_EVENTS}
                said |= {"message": self._named(event["message"]), "apiVersion": about["apiVersion"]}
                kept.append(said)
        return sorted(kept, key=str)

    def _named(self, text: str) -> str:
        """Gives names that are drawn at random another one."""
        return re.sub(r"(?<= of Pod )[\w-]+", "POD", text.replace(self.place.home, "HOME"))

    def _plain(self, described: str) -> str:
        """Takes out what no two runs have in common: times, and how often and in which order events came."""
        told: list[str] = []
        events: list[str] = []
        for line in self._named(described).splitlines():
            if line.startswith(("  Normal", "  Warning")):
                kind, reason, _, source, text = re.split(r"\s{2,}", line.strip(), maxsplit=4)
                events.append(f"  {kind}  {reason}  {source}  {text}")
            elif not line.startswith("CreationTimestamp:"):
                told.append(re.sub(r"(?<=\S)(\s{2,}|\t+)", "  ", line).rstrip())
        return "\n".join([*told, *sorted(events)])


_OF_EVENTS = ("type", "reason", "message", "source", "reportingComponent", "reportingInstance", "action")
REQUESTS = ("ingresses.networking.k8s.io", "main-route", "requests-per-second")


async def php_apache(walk: Walk) -> None:
    """Walkthrough of the documentation: CPU by ``kubectl autoscale``, then several metrics."""
    place, values = walk.place, walk.place.values
    app, target = "php-apache", "Deployment/php-apache"
    place.load.set(app, 0)
    await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/php-apache.yaml"))
    await place.until("it runs", lambda: len(place.running(app)) == 1)
    said = await walk.kubectl("autoscale", "deployment", app, "--cpu=50%", "--min=1", "--max=10")
    assert said == "horizontalpodautoscaler.autoscaling/php-apache autoscaled\n"
    await walk.scene("idle", app, f"{target}  cpu: 0%/50%  1  10  1", READY, VALID, FEW)
    place.load.set(app, 610)
    await walk.scene("under load", app, f"{target}  cpu: 43%/50%  1  10  7", READY, VALID, WITHIN)
    place.load.set(app, 0)
    await walk.scene("idle again", app, f"{target}  cpu: 0%/50%  1  10  1", READY, VALID, FEW)

    # 500 packets a pod of 1,000; half of the requests of an Ingress that 10,000 are meant for.
    values.pods["packets-per-second"] = {app: 500_000}
    values.objects[REQUESTS] = "5k"
    await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/several-metrics.yaml"))
    row = f"{target}  cpu: 0%/50%, {{}}/1k + 1 more...  1  10  {{}}"
    await walk.scene("several", app, row.format(500, 1), READY, VALID, WITHIN)
    values.pods["packets-per-second"] = {app: 2_700_000}
    await walk.scene("packets", app, row.format(900, 3), READY, VALID, WITHIN)
    await place.until("three are ready", lambda: len(place.running(app)) == 3)
    values.objects[REQUESTS] = "100k"
    await walk.scene("requests", app, row.format(270, 10), READY, VALID, MANY)
    del values.objects[REQUESTS]
    await walk.scene("no requests", app, row.format(270, 10), GOT, "FailedGetObjectMetric", MANY)
    values.pods["packets-per-second"] = {app: 500_000}
    values.objects[REQUESTS] = "1k"
    await walk.scene("quiet", app, row.format(500, 1), READY, VALID, WITHIN)


async def one_container(walk: Walk) -> None:
    """ContainerResource: what the other container uses does not count."""
    place, app, target = walk.place, "shipped", "Deployment/shipped"
    place.load.set(app, 30, "application")
    place.load.set(app, 500, "log-shipper")
    await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/one-container.yaml"))
    await walk.scene("shipping", app, f"{target}  cpu: 30%/60%  1  6  1", READY, VALID, WITHIN)
    place.load.set(app, 170, "application")
    await walk.scene("serving", app, f"{target}  cpu: 56%/60%  1  6  3", READY, VALID, WITHIN)
    place.load.set(app, 30, "application")
    await walk.scene("shipping again", app, f"{target}  cpu: 30%/60%  1  6  1", READY, VALID, WITHIN)


async def to_zero(walk: Walk) -> None:
    """External metric: from one to none, and back from none."""
    place, app, target = walk.place, "worker", "Deployment/worker"
    queue = {"queue": "worker_tasks"}
    others = ({"queue": "mail"}, "1k")
    place.values.external["queue_messages_ready"] = [(queue, "20"), others]
    await walk.kubectl("apply", "-f", str(EXAMPLES / "hpa/to-zero.yaml"))
    await walk.scene("one", app, f"{target}  20/30 (avg)  0  5  1", READY, VALID, WITHIN)
    place.values.external["queue_messages_ready"] = [(queue, "0"), others]
    nothing = "-9223372036854775808m/30 (avg)"
    await walk.scene("none", app, f"{target}  {nothing}  0  5  0", READY, VALID, WITHIN, "ScaledToZero")
    await place.until("nothing runs", lambda: not place.running(app))
    place.values.external["queue_messages_ready"] = [(queue, "70"), others]
    row = f"{target}  23334m/30 (avg)  0  5  3"
    await walk.scene("three", app, row, READY, VALID, WITHIN, "NotScaledToZero")
    await place.until("three run", lambda: len(place.running(app)) == 3)
    del place.values.external["queue_messages_ready"]
    failed = "FailedGetExternalMetric"
    row = f"{target}  <unknown>/30 (avg)  0  5  3"
    await walk.scene("unknown", app, row, GOT, failed, WITHIN, "NotScaledToZero")
    place.values.external["queue_messages_ready"] = [(queue, "0"), others]
    row = f"{target}  {nothing}  0  5  0"
    await walk.scene("none again", app, row, READY, VALID, WITHIN, "ScaledToZero")


async def custom_kind(walk: Walk) -> None:
    """A CronTab, whose pods another program makes."""
    place, name = walk.place, "my-new-cron-object"
    target = f"{CRON_TABS.kind}/{name}"
    place.load.set(name, 100)
    for file in ("crontab", "hpa"):
        await walk.kubectl("apply", "-f", str(EXAMPLES / f"crontab/{file}.yaml"))
    await place.until("its pod runs", lambda: len(place.running(name)) == 1)
    await walk.scene("one", name, f"{target}  cpu: 20%/50%  1  8  1", READY, VALID, WITHIN)
    place.load.set(name, 700)
    await walk.scene("three", name, f"{target}  cpu: 46%/50%  1  8  3", READY, VALID, WITHIN)
    place.load.set(name, 100)
    await walk.scene("one again", name, f"{target}  cpu: 20%/50%  1  8  1", READY, VALID, WITHIN)


async def nothing_to_go_by(walk: Walk) -> None:
    """What goes wrong most: no target, no requests, no metrics."""
    await walk.kubectl("create", "deployment", "modest", "--image=registry.test/app:1")
    await walk.place.until("it runs", lambda: len(walk.place.running("modest")) == 1)
    await walk.kubectl("autoscale", "deployment", "modest", "--cpu=50%", "--max=3")
    row = "Deployment/modest  cpu: <unknown>/50%  1  3  1"
    failed = "FailedGetResourceMetric"
    await walk.scene("no metrics", "modest", row, GOT, failed, says="no metrics returned")
    walk.place.load.set("modest", 100)
    await walk.scene("no requests", "modest", row, GOT, failed, says="missing request for cpu")
    await walk.kubectl("delete", "deployment", "modest")
    await walk.scene("no target", "modest", row, "FailedGetScale", failed)


WALKS: dict[str, Callable[[Walk], Awaitable[None]]] = {
    "php-apache": php_apache,
    "one container": one_container,
    "to zero": to_zero,
    "custom kind": custom_kind,
    "nothing to go by": nothing_to_go_by,
}
