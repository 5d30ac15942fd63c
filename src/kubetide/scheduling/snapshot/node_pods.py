"""The pods on one node, stored without an object per pod."""

from __future__ import annotations

from array import array

from kubetide.objects.pod import Pod
from kubetide.scheduling.pods.pod_class import Use

PodKey = tuple[str, str]
"""(namespace, name)"""


class PodChanges:
    """The order in which nodes' pods have changed."""

    __slots__ = ("_last", "stamp")

    def __init__(self) -> None:
        self.stamp = 0
        """The number of the last change."""
        self._last: dict[str, int] = {}

    def note(self, name: str) -> None:
        """Note a change of the pods on a node."""
        stamp = self.stamp = self.stamp + 1
        last = self._last
        # Out and in again: the last to change stand at the end.
        last.pop(name, None)
        last[name] = stamp

    def since(self, stamp: int) -> list[str]:
        """Return the nodes whose pods have changed after the change of that number."""
        found: list[str] = []
        for name, last in reversed(self._last.items()):
            if last <= stamp:
                break
            found.append(name)
        return found


class NodePods:
    """Pods on a node, or waiting for it to exist, in order of addition.

    Attributes:
        name: The node's.
        keys, pods, uses: Of the same length and order.
        listed: The pods as they were given out last; None once they have changed.
    """

    __slots__ = ("_changes", "_hashes", "keys", "listed", "name", "pods", "uses")

    def __init__(self, name: str, changes: PodChanges) -> None:
        self.name = name
        self._changes = changes
        self.keys: list[PodKey] = []
        # Looked at in place of the keys, each of which lies elsewhere in memory.
        self._hashes = array("q")
        self.pods: list[Pod] = []
        self.uses: list[Use] = []
        self.listed: tuple[Pod, ...] | None = None

    def place_of(self, key: PodKey) -> int:
        """Return the index of a pod. Raises ValueError for an unknown pod."""
        at = self._hashes.index(hash(key))
        return at if self.keys[at] == key else self.keys.index(key)

    def append(self, key: PodKey, pod: Pod, use: Use) -> None:
        """Add a pod at the end."""
        self.keys.append(key)
        self._hashes.append(hash(key))
        self.pods.append(pod)
        self.uses.append(use)
        # As ``_note_change`` does: this is what every placement of a simulation calls.
        self.listed = None
        self._changes.note(self.name)

    def insert(self, at: int, key: PodKey, pod: Pod, use: Use) -> None:
        """Insert a pod at that index."""
        self.keys.insert(at, key)
        self._hashes.insert(at, hash(key))
        self.pods.insert(at, pod)
        self.uses.insert(at, use)
        self._note_change()

    def pop(self, at: int) -> tuple[PodKey, Pod, Use]:
        """Remove and return the pod at that index."""
        self._note_change()
        del self._hashes[at]
        return self.keys.pop(at), self.pods.pop(at), self.uses.pop(at)

    def put_instead(self, at: int, pod: Pod, use: Use) -> None:
        """Update the pod at that index."""
        self.pods[at] = pod
        self.uses[at] = use
        self._note_change()

    def _note_change(self) -> None:
        self.listed = None
        self._changes.note(self.name)
