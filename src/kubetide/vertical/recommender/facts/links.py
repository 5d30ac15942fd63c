"""Which VPAs select a pod, by its namespace and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kubetide.objects.meta import Key
from kubetide.units.selectors import Selector


class Links:
    """VPAs indexed by a label that their selector requires, so that a pod is matched with few of them."""

    def __init__(self) -> None:
        self._selectors: dict[Key, Selector] = {}
        self._places: dict[Key, dict[Key, None]] = {}
        self._by_label: dict[tuple[str, str, str], dict[Key, None]] = {}
        self._others: dict[str, dict[Key, None]] = {}

    def put(self, key: Key, selector: Selector) -> None:
        """Set a VPA's selector."""
        self.drop(key)
        self._selectors[key] = selector
        labels = selector.exact_values().items()
        places = [self._by_label.setdefault((key[0], label, value), {}) for label, value in labels]
        # The label with most values; one that all workloads of a namespace share excludes nothing.
        place = min(places, key=len) if places else self._others.setdefault(key[0], {})
        place[key] = None
        self._places[key] = place

    def drop(self, key: Key) -> None:
        """Remove a VPA; an unknown one is ignored."""
        if self._selectors.pop(key, None) is not None:
            self._places.pop(key).pop(key)

    def matching(self, namespace: str, labels: Mapping[str, str]) -> list[Key]:
        """Return the VPAs that select a pod with these labels, ordered."""
        found = self._candidates(namespace, labels)
        return sorted(key for key in found if self._selectors[key].matches(labels))

    def _candidates(self, namespace: str, labels: Mapping[str, str]) -> Iterator[Key]:
        yield from self._others.get(namespace, ())
        for label, value in labels.items():
            yield from self._by_label.get((namespace, label, value), ())
