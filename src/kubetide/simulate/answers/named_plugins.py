"""A faster ``recorded_plugins``: it loads the scheduler only for records that use its plug-ins."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Protocol

from kubetide.runtime.recording.records import Header

_FILTERS = "kubetide.scheduling.filters.in_use"


class TakesUp(Protocol):
    """Follows the headers of segments."""

    def take_up(self, header: Header) -> bool:
        """Use the plug-ins that a segment names; return whether they differ from the last segment's."""
        ...


class _WhenNamed:
    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._inner: TakesUp | None = None
        self._begun = False

    def take_up(self, header: Header) -> bool:
        if self._inner is not None:
            return self._inner.take_up(header)
        if header.plugins:
            recorded = import_module("kubetide.simulate.answers.recorded_plugins")
            inner: TakesUp = self._stack.enter_context(recorded.recorded_plugins())
            self._inner = inner
            return inner.take_up(header)
        # Filters that nobody has loaded are the built-in ones.
        in_use = sys.modules.get(_FILTERS)
        if in_use is not None and not self._begun:
            self._stack.enter_context(in_use.using_filters(in_use.BUILT_IN))
            self._begun = True
        return False


@contextmanager
def named_plugins() -> Iterator[TakesUp]:
    """Restore, at the end, the filters that were in use before."""
    with ExitStack() as stack:
        yield _WhenNamed(stack)
