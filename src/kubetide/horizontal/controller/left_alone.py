"""HPAs that are left to another controller: for the loop they are not there."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from kubetide.horizontal.views import Key
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.watching import Feed


class OwnChanges:
    """The changes of a feed without those of HPAs that are left alone.

    One that begins to be left alone comes as deleted, one that ceases to be as new.
    """

    def __init__(
        self,
        feed: Feed[HorizontalPodAutoscaler],
        objects: Mapping[Key, HorizontalPodAutoscaler],
        left_alone: Callable[[], Collection[Key]],
    ) -> None:
        self._feed = feed
        self._objects = objects
        self._left_alone = left_alone
        self._left: frozenset[Key] = frozenset()

    def drain(self) -> dict[Key, HorizontalPodAutoscaler | None]:
        """Gives each changed object, None for one that is gone or is left alone from now on."""
        left = frozenset(self._left_alone())
        changed = {key: hpa for key, hpa in self._feed.drain().items() if key not in left}
        for key in self._left - left:
            changed[key] = self._objects.get(key)
        for key in left - self._left:
            changed[key] = None
        self._left = left
        return changed

    def latest(self, key: Key) -> HorizontalPodAutoscaler | None:
        """Gives an HPA as the cache has it; None for one that is not there, or left alone."""
        return None if key in self._left else self._objects.get(key)
