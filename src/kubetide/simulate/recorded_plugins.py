"""The plug-ins that records were decided with, in use while they are decided again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kubetide.ports.plugins import Plugin, PluginNotUsable
from kubetide.runtime.records import Header, RecordError
from kubetide.scheduling.filters.in_use import BUILT_IN, use_filters, using_filters, with_plugins
from kubetide.scheduling.filters.named import GROUP


class RecordedPlugins:
    """Follows the headers of segments; other versions than the recorded ones are collected in ``notes``."""

    def __init__(self) -> None:
        self._recorded: tuple[Plugin, ...] = ()
        self.notes: dict[str, None] = {}

    def take_up(self, header: Header) -> bool:
        """Use the filter plug-ins that a segment names; return whether they differ from those of the one before.

        Raises: RecordError, which names the plug-in that is missing and the version to install.
        """
        recorded = tuple(one for one in header.plugins if one.group == GROUP)
        if recorded == self._recorded:
            return False
        where = f"{header.loop}-{header.segment:04d}.jsonl"
        try:
            filters = with_plugins(one.name for one in recorded)
        except PluginNotUsable as error:
            raise RecordError(
                f"{where} was recorded with the plug-ins {_named(recorded)}; {error}; install what is missing, in the "
                "recorded version"
            ) from error
        for then, now in zip(recorded, filters.plugins, strict=True):
            if then != now:
                self.notes[f"{where} was recorded with the plug-in {then}; installed is {now}"] = None
        self._recorded = recorded
        use_filters(filters)
        return True


@contextmanager
def recorded_plugins() -> Iterator[RecordedPlugins]:
    """Begin with the built-in filters alone, and put back what was in use at the end."""
    with using_filters(BUILT_IN):
        yield RecordedPlugins()


def _named(plugins: tuple[Plugin, ...]) -> str:
    return ", ".join(str(one) for one in plugins)
