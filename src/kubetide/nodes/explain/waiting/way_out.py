"""A way out: what would make a group take a pod."""

from __future__ import annotations

import re

import msgspec

from kubetide.nodes.explain.waiting.group_changes import NEW_GROUPS
from kubetide.nodes.explain.waiting.limit_changes import LIMITS, MAXIMUM
from kubetide.nodes.explain.waiting.pod_changes import Change
from kubetide.units.time import Instant


class WayOut(msgspec.Struct, frozen=True):
    """Changes that together make a group take a pod; ``verified`` if deciding again with them confirmed it.

    ``remaining`` is what the group still says to the pod where they are not enough; empty where that is not known.
    """

    group: str
    changes: tuple[Change, ...]
    verified: bool
    remaining: str = ""

    @property
    def text(self) -> str:
        """All changes in one sentence."""
        return " and ".join(change.what for change in self.changes)

    @property
    def text_with_group(self) -> str:
        """The same, with the group where it does not name that."""
        named = re.search(rf"\bgroup {re.escape(self.group)}(?![\w.-])", self.text)
        return self.text if named else f"{self.text} (group {self.group})"

    @property
    def only_limits(self) -> bool:
        """Whether nothing but limits keeps the pod off: the group's, or those over the whole cluster."""
        return all(change.kind in LIMITS for change in self.changes)

    @property
    def only_maximum(self) -> bool:
        """Whether nothing but the maximum of the group keeps the pod off."""
        return all(change.kind == MAXIMUM for change in self.changes)

    @property
    def needs_delivery(self) -> bool:
        """Whether the way out waits for a backoff: it helps only if the cloud delivers nodes again."""
        return any(change.kind == "backoff" for change in self.changes)

    @property
    def effort(self) -> tuple[int, int, bool, Instant]:
        """A sort key; the smallest effort is least.

        Few changes, no new group, no other labels on nodes, waiting over changing, a short wait.
        """
        waits = [change.until for change in self.changes if change.until is not None]
        groups = sum(change.kind in NEW_GROUPS for change in self.changes)
        labels = sum(change.kind == "label" for change in self.changes)
        waiting = len(waits) == len(self.changes)
        return len(self.changes) + groups, labels, not waiting, max(waits, default=Instant(0))
