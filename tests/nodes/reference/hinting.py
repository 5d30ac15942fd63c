"""Upstream's trial scheduling of many pods, which remembers where each pod went in the loop before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.nodes.reference.places import Place
from tests.nodes.reference.pod_kinds import MOST_KINDS, controller, identity, is_daemon, like, priority
from tests.nodes.reference.snapshot import Snapshot
from tests.nodes.reference.world import Json


def anywhere(_: Place) -> bool:
    return True


@dataclass
class Hinting:
    """Hints of two generations: those set since the last `drop_old`, and those set before it."""

    current: dict[str, str] = field(default_factory=dict)
    old: dict[str, str] = field(default_factory=dict)

    def drop_old(self) -> None:
        self.old, self.current = self.current, {}

    def try_all(
        self,
        snapshot: Snapshot,
        pods: list[Json],
        matches: Callable[[Place], bool] = anywhere,
        *,
        stop_at_failure: bool = False,
    ) -> list[tuple[Json, str]]:
        """Put pods into the snapshot where they fit; return each pod that was placed with its node.

        Of each priority, from the highest down, pods go back to their hinted nodes first; then come the others,
        in the order given. A failure ends only the pods of its priority.
        """
        placed: list[tuple[Json, str]] = []
        refused: dict[str, list[Json]] = {}
        for level in sorted({priority(one) for one in pods}, reverse=True):
            without = []
            for pod in (one for one in pods if priority(one) == level):
                name = self._by_hint(snapshot, pod, matches)
                if name is None:
                    without.append(pod)
                else:
                    placed.append((pod, name))
            for pod in without:
                name = self._by_search(snapshot, pod, matches, refused)
                if name is not None:
                    placed.append((pod, name))
                elif stop_at_failure:
                    break
        return placed

    def _by_hint(self, snapshot: Snapshot, pod: Json, matches: Callable[[Place], bool]) -> str | None:
        key = identity(pod)
        name = self.current.get(key, self.old.get(key))
        place = snapshot.get(name) if name is not None else None
        if place is None or not matches(place) or snapshot.check(pod, place.name):
            return None
        snapshot.add_pod(pod, place.name)
        self.current[key] = place.name
        return place.name

    def _by_search(
        self,
        snapshot: Snapshot,
        pod: Json,
        matches: Callable[[Place], bool],
        refused: dict[str, list[Json]],
    ) -> str | None:
        """Search the snapshot, unless a pod like this one, of the same controller, was refused before in this call."""
        owner = controller(pod)
        known = refused.get(owner["uid"], []) if owner is not None else []
        if any(like(one, pod) for one in known):
            return None
        name = snapshot.find(pod, matches)
        if name is None:
            if owner is not None and not is_daemon(pod) and len(known) < MOST_KINDS:
                refused.setdefault(owner["uid"], []).append(pod)
            return None
        snapshot.add_pod(pod, name)
        self.current[identity(pod)] = name
        return name
