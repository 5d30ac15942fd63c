"""Uses the plug-ins that records were decided with while they are replayed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubetide.clouds.registry import PLUGINS as CLOUDS
from kubetide.ports.plugins import Plugin, PluginNotUsable, load_plugin
from kubetide.runtime.metric_sources import PLUGINS as METRIC_SOURCES
from kubetide.runtime.recording.records import Header, RecordError
from kubetide.scheduling.filters.in_use import BUILT_IN, use_filters, using_filters, with_plugins
from kubetide.scheduling.filters.named import PLUGINS as FILTERS


class RecordedPlugins:
    """Follows the headers of segments; ``notes`` collects versions that differ from the recorded ones."""

    def __init__(self) -> None:
        self._recorded: tuple[Plugin, ...] = ()
        self.notes: dict[str, None] = {}

    def take_up(self, header: Header) -> bool:
        """Use the filter plug-ins that a segment names; return whether they differ from the last segment's.

        Raises: RecordError, which names the plug-in that is missing and the version to install.
        """
        where = f"{header.loop}-{header.segment:04d}.jsonl"
        for then in header.plugins:
            # What a cloud or a metric source has said stands in the records.
            if then.group not in {FILTERS.name, CLOUDS.name, METRIC_SOURCES.name}:
                self._check(then, where)
        recorded = tuple(one for one in header.plugins if one.group == FILTERS.name)
        if recorded == self._recorded:
            return False
        try:
            filters = with_plugins(one.name for one in recorded)
        except PluginNotUsable as error:
            raise _missing(where, recorded, error) from error
        for then, now in zip(recorded, filters.plugins, strict=True):
            self._note(then, now, where)
        self._recorded = recorded
        use_filters(filters)
        return True

    def _check(self, then: Plugin, where: str) -> None:
        """Note another version of a plug-in that the loop's settings name. Raises RecordError where it is missing."""
        try:
            now, _ = load_plugin(then.group, then.name, where)
        except PluginNotUsable as error:
            raise _missing(where, (then,), error) from error
        self._note(then, now, where)

    def _note(self, then: Plugin, now: Plugin, where: str) -> None:
        if then != now:
            self.notes[f"{where} was recorded with the plug-in {then}; installed is {now}"] = None


@contextmanager
def recorded_plugins() -> Iterator[RecordedPlugins]:
    """Begin with the built-in filters only; restore, at the end, those in use before."""
    with using_filters(BUILT_IN):
        yield RecordedPlugins()


def _missing(where: str, recorded: tuple[Plugin, ...], error: PluginNotUsable) -> RecordError:
    named = ", ".join(str(one) for one in recorded)
    return RecordError(
        f"{where} was recorded with the plug-ins {named}; {error}; install what is missing, in the recorded version"
    )
