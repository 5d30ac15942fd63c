"""HPAs that are left to another controller: for the loop they are not there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubetide.loop import Owners
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import Key
from kubetide.watching import Feed, Informer


class NoOthers:
    """Nobody else is there."""

    def left_alone(self) -> Collection[Key]:
        """Return none."""
        return ()

    def knows(self, key: Key) -> bool:  # noqa: ARG002  the protocol's name
        """Whatever it is."""
        return True


class OwnChanges:
    """The changes of a feed without those of HPAs that are left alone.

    One that begins to be left alone comes as deleted, one that ceases to be as new.
    """

    def __init__(
        self,
        feed: Feed[HorizontalPodAutoscaler],
        objects: Mapping[Key, HorizontalPodAutoscaler],
        owners: Owners,
    ) -> None:
        self._feed = feed
        self._objects = objects
        self._owners = owners
        self._left: frozenset[Key] = frozenset()
        self._unknown: frozenset[Key] = frozenset()

    def start_anew(self, hpas: Informer[HorizontalPodAutoscaler]) -> None:
        """Begin with all HPAs again."""
        hpas.close_feed(self._feed)
        self._feed = hpas.feed()
        self._left = frozenset()

    def drain(self) -> dict[Key, HorizontalPodAutoscaler | None]:
        """Return each changed object, None for one that is gone or is left alone from now on."""
        drained = self._feed.drain()
        if not (drained or self._unknown or self._left or self._owners.left_alone()):
            return {}
        self._unknown = frozenset(
            key for key in (*self._unknown, *drained) if key in self._objects and not self._owners.knows(key)
        )
        left = self._unknown.union(self._owners.left_alone())
        changed = {key: hpa for key, hpa in drained.items() if key not in left}
        for key in self._left - left:
            changed[key] = self._objects.get(key)
        for key in left - self._left:
            changed[key] = None
        self._left = left
        return changed

    def latest(self, key: Key) -> HorizontalPodAutoscaler | None:
        """Return an HPA as the cache has it; None for one that is not there, or left alone."""
        return None if key in self._left else self._objects.get(key)
