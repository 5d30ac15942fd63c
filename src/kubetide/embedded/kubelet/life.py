"""What a kubelet pool knows about one pod, and the steps of its life."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from kubetide.embedded.kubelet.statuses import Lives
from kubetide.objects.base import Json
from kubetide.objects.meta import Key
from kubetide.objects.pod import PodSpec
from kubetide.units.time import Instant

Do = Literal[
    "run",
    "settle",
    "ready",
    "finish",
    "end",
    "crash",
    "wait",
    "restart",
    "collect",
    "lose",
    "regain",
    "heartbeat",
    "renew",
    "settle evictions",
    "resize",
    "resized",
]


class Step(NamedTuple):
    """What is due; ``epoch`` outdates the steps of a pod that were put before it was stopped or crashed."""

    do: Do
    key: Key = ("", "")
    uid: str = ""
    epoch: int = 0


_NO_SPEC = PodSpec()


@dataclass(eq=False)
class Life:
    """One pod on an animated node."""

    uid: str
    node: str
    accepted: Instant
    allocated: PodSpec = _NO_SPEC
    """What the pod was granted."""
    actual: PodSpec | None = None
    """What its containers run with; in one process None until it is resized for the first time, as it does not differ."""
    generation: int = 0
    resizing: bool = False
    started: Instant | None = None
    orphaned: Instant | None = None
    epoch: int = 0
    stopping: bool = False
    restarting: bool = False
    crash: tuple[str, str, int] = ("", "", 0)
    restarts: dict[str, int] = field(default_factory=dict)
    ended: dict[str, Json] = field(default_factory=dict)
    """How each container last ended."""
    crashes: int = 0
    """Crashes in a row, which the back-off goes by."""
    parked: Step | None = None

    def lives(self, now: Instant) -> Lives:
        """Return what a status says of its containers; ``now`` for those that have not started."""
        return Lives(self.started or now, self.restarts, self.ended)
