"""Objects that a loop cannot understand: each is reported once, with the reason and how to fix it."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from kubetide.acting.events import EventWriter, cut_note
from kubetide.objects.kinds import RESOURCE_CLAIMS, RESOURCE_SLICES, Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.scheduling.devices.ledger import Ledger
from kubetide.scheduling.snapshot.unread import unread_devices

_LOG = logging.getLogger(__name__)

REASON: Final = "NotUnderstood"
"""Of the events, which are warnings."""

Place = tuple[str, str, str]
"""Resource, namespace and name."""


class UnreadObjects:
    """The present problems of unreadable objects.

    Each is reported by an event on the object and a line in the log, and again when something else is wrong.
    """

    def __init__(self, events: EventWriter) -> None:
        self._events = events
        self._found: dict[Place, str] = {}
        self._untold: dict[Place, tuple[Kind[Any], ObjectMeta]] = {}
        self._resources: dict[str, None] = {}

    @property
    def found(self) -> Mapping[Place, str]:
        """The problem of each object."""
        return MappingProxyType(self._found)

    def numbers(self) -> dict[str, int]:
        """Return the number of such objects per resource, 0 where there was one before."""
        self._resources.update({resource: None for resource, _, _ in self._found})
        counts = Counter(resource for resource, _, _ in self._found)
        return {resource: counts[resource] for resource in self._resources}

    def note(self, kind: Kind[Any], meta: ObjectMeta, problem: str) -> None:
        """Note the problem of an object; an empty ``problem`` clears it."""
        place = kind.resource, meta.namespace, meta.name
        problem = cut_note(problem)
        if not problem:
            self._found.pop(place, None)
            self._untold.pop(place, None)
        elif self._found.get(place) != problem:
            self._found[place] = problem
            self._untold[place] = kind, meta

    def keep(self, kind: Kind[Any], names: Iterable[tuple[str, str]]) -> None:
        """Forget objects of a kind that are not among these (namespace, name)."""
        still_read = {(kind.resource, *name) for name in names}
        for place in [one for one in self._found if one[0] == kind.resource and one not in still_read]:
            self._found.pop(place)
            self._untold.pop(place, None)

    def note_devices(self, ledger: Ledger | None) -> None:
        """Note the present problems of device slices and claims."""
        found = [] if ledger is None else list(unread_devices(ledger))
        for kind in (RESOURCE_SLICES, RESOURCE_CLAIMS):
            self.keep(kind, [(meta.namespace, meta.name) for one, meta, _ in found if one is kind])
        for kind, meta, problem in found:
            self.note(kind, meta, problem)

    async def tell(self) -> None:
        """Report what has not been reported yet."""
        untold, self._untold = self._untold, {}
        for place, (kind, meta) in untold.items():
            problem = self._found[place]
            name = "/".join(part for part in place[1:] if part)
            _LOG.warning("%s %s is not understood: %s", place[0], name, problem)
            await self._events.record(kind, meta, "Warning", REASON, problem)
