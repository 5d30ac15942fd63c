"""ConfigMaps that the loop reads: group priorities, and learned machine facts of an earlier process."""

from __future__ import annotations

from kubetide.nodes.expander import reads_priorities
from kubetide.nodes.facts.priorities import PRIORITIES_KEY, PRIORITY_MAP, PriorityMap
from kubetide.nodes.memory import Learned
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY, read_learned
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, Forbidden, NotFound


class ConfigMapReader:
    """Reads the ConfigMaps that the settings enable."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._unreadable = ""
        self.has_read_learned = False
        """Whether what an earlier process has learned was read: before, nothing may be written in its place."""
        self.problems = {CONFIG_MAP: "", PRIORITY_MAP: ""}
        """By object why it could not be read last, as a sentence; empty if it could, is not there, or a right lacks."""

    async def learned(self, settings: Settings) -> Learned | None:
        """Return the learned facts of an earlier process: once, as soon as they can be read."""
        if self.has_read_learned or settings.advises or not settings.templates_by_instance_type:
            return None
        self.problems[CONFIG_MAP] = ""
        try:
            found = await self._cluster.get(CONFIG_MAPS, CONFIG_MAP, namespace=settings.namespace)
            self.has_read_learned = True
            text = (found.data or {}).get(DATA_KEY)
            return read_learned(text) if text else None
        except (NotFound, Forbidden):
            self.has_read_learned = True
        except ApiError as error:
            # It is asked for again with the next tick.
            without = "what earlier processes have learned of machines is not known, and nothing is stored, until then"
            self.problems[CONFIG_MAP] = (
                f"ConfigMap {settings.namespace}/{CONFIG_MAP} cannot be read: {error}; {without}"
            )
        except ValueError as error:
            self._unreadable = (
                f"ConfigMap {settings.namespace}/{CONFIG_MAP}, data.{DATA_KEY} cannot be read: {error}. "
                "What was learned of machines is learned anew; delete the object, or leave it to be written again."
            )
        return None

    def take_unreadable(self) -> str:
        """Return, once, why the learned facts of an earlier process cannot be read; empty if they can."""
        why, self._unreadable = self._unreadable, ""
        return why

    async def priority_map(self, settings: Settings) -> PriorityMap | None:
        """Return the ConfigMap of the expander ``priority``; None if it is not in use or cannot be read now."""
        if not reads_priorities(settings.expander):
            return None
        self.problems[PRIORITY_MAP] = ""
        try:
            found = await self._cluster.get(CONFIG_MAPS, PRIORITY_MAP, namespace=settings.namespace)
        except NotFound:
            return PriorityMap()
        except Forbidden:
            return None  # The guard tells of it.
        except ApiError as error:
            stays = "the priorities that were last read, if any were, hold until then"
            self.problems[PRIORITY_MAP] = (
                f"ConfigMap {settings.namespace}/{PRIORITY_MAP} cannot be read: {error}; {stays}"
            )
            return None
        return PriorityMap(True, found.metadata.uid, (found.data or {}).get(PRIORITIES_KEY))
