"""HPAs that another controller serves: the loop does not see them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kubetide.loop import Owners
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.meta import Key
from kubetide.watching import Feed, Informer


class NoOthers:
    """No other controller."""

    def left_alone(self) -> Collection[Key]:
        """Return no HPAs."""
        return ()

    def why(self, key: Key) -> str:  # noqa: ARG002  the protocol's name
        """Return nothing: no HPA is left alone."""
        return ""

    def knows(self, key: Key) -> bool:  # noqa: ARG002  the protocol's name
        """Return True for any HPA."""
        return True


class OwnChanges:
    """The changes of a feed without those of HPAs that another controller serves.

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
        """Make the next ``drain`` return all HPAs."""
        hpas.close_feed(self._feed)
        self._feed = hpas.feed()
        self._left = frozenset()

    def drain(self) -> dict[Key, HorizontalPodAutoscaler | None]:
        """Return each changed HPA, None for one that was deleted or is served by another controller from now on."""
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

    def left_alone(self) -> dict[Key, str]:
        """Return the HPAs that are left alone since the last ``drain``, ordered, and why each is."""
        there = (key for key in sorted(self._left - self._unknown) if key in self._objects)
        # One that has become ours since is new in the next ``drain``.
        return {key: why for key in there if (why := self._owners.why(key))}

    def latest(self, key: Key) -> HorizontalPodAutoscaler | None:
        """Return the cached HPA; None for an unknown one, or one that another controller serves."""
        return None if key in self._left else self._objects.get(key)
