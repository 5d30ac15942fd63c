"""Templates that are kept from tick to tick, while what they were made of is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kubetide.nodes.settings import Settings
from kubetide.objects.workload import DaemonSet
from kubetide.scheduling import ClusterFacts

if TYPE_CHECKING:
    from kubetide.nodes.state import State
    from kubetide.nodes.templates.template import Template

MadeOf = tuple[object, ...]
"""What a group's template is made of beside what all templates are made of; equal parts make an equal template."""


class KnownTemplates:
    """The templates of earlier ticks, by group: a memo that may be dropped at any time."""

    def __init__(self) -> None:
        self._settings: Settings | None = None
        self._facts: ClusterFacts | None = None
        self._daemon_sets: dict[tuple[str, str], DaemonSet] = {}
        self._by_group: dict[str, tuple[MadeOf, Template]] = {}

    def settle(self, state: State) -> None:
        """Forget templates of groups that are gone, and all of them where settings, facts or DaemonSets have changed."""
        settings, facts = state.settings, state.snapshot.facts
        if settings is self._settings and facts is self._facts and self._daemon_sets == state.daemon_sets:
            for group_id in self._by_group.keys() - state.groups.keys():
                del self._by_group[group_id]
            return
        self._settings, self._facts, self._daemon_sets = settings, facts, dict(state.daemon_sets)
        self._by_group.clear()

    def find(self, group_id: str, made_of: MadeOf) -> Template | None:
        """Return the group's template, if it was made of this."""
        before, template = self._by_group.get(group_id, ((), None))
        return template if before == made_of else None

    def keep(self, group_id: str, made_of: MadeOf, template: Template) -> None:
        """Keep a template."""
        self._by_group[group_id] = made_of, template
