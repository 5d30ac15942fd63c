"""What a timeline is: objects that are there before it begins, and steps at times from its start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.cluster import Cluster
from kubetide.units.time import Duration

NAMESPACE = "stage"


class Stage(Protocol):
    """A cluster that a timeline is played on.

    Attributes:
        cluster: The client of the person who plays the steps.
        namespace: Where namespaced objects live.
    """

    cluster: Cluster
    namespace: str

    def name_of(self, label: str) -> str:
        """Return the name of the object with that label, such as ``web#1-2`` for the second pod of the first ReplicaSet of web."""
        ...

    def note(self, fact: str) -> None:
        """Note what came of a step."""
        ...

    def pods_on(self, node: str) -> list[str]:
        """Return the labels of the pods on a node, in order."""
        ...

    async def make_ready(self, node: str) -> None:
        """Make a node Ready as its kubelet does."""
        ...

    async def silence(self, node: str) -> None:
        """Let a node's kubelet fall silent: no lease and no status from then on, and no pod of it ends."""
        ...

    async def resume(self, node: str) -> None:
        """Let a silent kubelet speak again."""
        ...

    async def sleep(self, pause: Duration) -> None:
        """Return after so long."""
        ...


class Step(Protocol):
    """Something that is done to the cluster at a time from the start."""

    @property
    def at(self) -> float: ...

    async def play(self, stage: Stage) -> None:
        """Do it."""
        ...


@dataclass(frozen=True)
class Timeline:
    """Steps, and how long what the control plane does is watched.

    Attributes:
        name: Of the timeline and of its recording.
        about: The question that it answers.
        lasts: Seconds from the start.
        before: Kinds and bodies of objects that are there, and settled, when it begins.
        steps: In the order of their times.
        tells_apart: Whether facts name single pods of a workload and nodes by number. Where equals are chosen among at
            random, they do not: the n-th fact of its kind is compared with the n-th.
        grace: Seconds after which a silent node is taken for lost, None where none falls silent.
    """

    name: str
    about: str
    lasts: float
    before: Sequence[tuple[Kind, Json]]
    steps: Sequence[Step]
    tells_apart: bool = False
    grace: int | None = None

    @property
    def slack_s(self) -> float:
        """How far from the recorded times facts may be beside the tolerance.

        Leases are renewed once a second, and looked at once a second: when in these seconds a node falls silent is chance.
        """
        return 0.0 if self.grace is None else 1.0
