"""What the turns of all VPAs in one loop share."""

from __future__ import annotations

from dataclasses import dataclass, field

from kubetide.objects.meta import Key, key_of
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.plan.board import Replacement
from kubetide.units.time import Instant
from kubetide.vertical.resources.policies import update_mode
from kubetide.vertical.updater import reasons
from kubetide.vertical.updater.decision import LateChange, Result, VpaCounts
from kubetide.vertical.updater.state import State


class OutOfTime(Exception):
    """The loop must end before the rate limit lets anything more through, or has lasted too long already."""


@dataclass(slots=True)
class Turn:
    """What holds during one loop.

    Attributes:
        served: The last VPA whose pods it was about to change.
        refused: UIDs of pods whose change was refused, or not answered.
        changing: By UID, pods whose change counts as made although the caches do not show it.
        replacements: Of pods that wait for capacity, or are being evicted as there is capacity.
        not_resized: UIDs of pods whose resize has failed since the last loop.
    """

    state: State
    start: Instant
    now: Instant
    deadline: Instant
    result: Result = field(default_factory=Result)
    served: Key | None = None
    refused: list[str] = field(default_factory=list)
    changing: dict[str, LateChange] = field(default_factory=dict)
    replacements: list[Replacement] = field(default_factory=list)
    not_resized: set[str] = field(default_factory=set)

    def counts_of(self, vpa: VerticalPodAutoscaler) -> VpaCounts:
        """Return the counts of a VPA in this loop."""
        return self.result.counts.setdefault(key_of(vpa), VpaCounts(update_mode(vpa.spec)))

    def say(self, code: str, pod: Key | None = None, vpa: Key | None = None, detail: str = "") -> None:
        """Note a reason: about the pod, else about the VPA, else about the loop."""
        owner = "/".join(vpa) if vpa is not None else ""
        subject = "/".join(pod) if pod is not None else owner or reasons.LOOP_SUBJECT
        reason = reasons.reason(code, subject, vpa=owner if pod is not None else "", detail=detail)
        self.result.reasons.append(reason)
