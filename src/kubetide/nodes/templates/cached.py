"""Templates cached between ticks while their input is unchanged."""

from __future__ import annotations

from collections.abc import Container, Mapping

from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.template import Template
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling import ClusterFacts

MadeOf = tuple[object, ...]
"""What a group's template is made of beside what all templates are made of; equal parts make an equal template."""


class KnownTemplates:
    """The templates of earlier ticks, by group: a cache that may be dropped at any time."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._facts: ClusterFacts | None = None
        self._daemon_sets: dict[tuple[str, str], DaemonSet] = {}
        self._by_group: dict[str, tuple[MadeOf, Template]] = {}

    def settle(
        self,
        settings: Settings,
        facts: ClusterFacts,
        daemon_sets: Mapping[tuple[str, str], DaemonSet],
        groups: Container[str],
    ) -> None:
        """Forget templates of deleted groups, and all of them if settings, facts or DaemonSets changed."""
        if settings is self._settings and facts is self._facts and self._daemon_sets == daemon_sets:
            for group_id in [one for one in self._by_group if one not in groups]:
                del self._by_group[group_id]
            return
        self._settings, self._facts, self._daemon_sets = settings, facts, dict(daemon_sets)
        self._by_group.clear()

    def find(self, group_id: str, made_of: MadeOf) -> Template | None:
        """Return the group's template if it was built from this input."""
        before, template = self._by_group.get(group_id, ((), None))
        return template if before == made_of else None

    def keep(self, group_id: str, made_of: MadeOf, template: Template) -> None:
        """Cache a template."""
        self._by_group[group_id] = made_of, template
