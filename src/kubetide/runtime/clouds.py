"""Which cloud: adapters by name, loaded only when they are named.

An adapter is a factory ``(config, clock) -> async context manager of a Cloud``: ``config`` is the
text of ``--cloud-config`` (a path, or empty), and the cloud is open as long as the context is. A
package offers it as an entry point of the group ``kubetide.clouds``; one that is not packaged is
named as ``module:factory``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from importlib.metadata import entry_points
from typing import Any, cast

from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import KubetideError

GROUP = "kubetide.clouds"
CloudFactory = Callable[[str, Clock], AbstractAsyncContextManager[Cloud]]


class CloudNotFound(KubetideError):
    """No adapter of that name; the text names those that are installed."""


def cloud_factory(name: str) -> CloudFactory:
    """Gives the adapter of a name. Raises CloudNotFound."""
    installed = {entry.name: entry for entry in entry_points(group=GROUP)}
    try:
        if name in installed:
            found: Any = installed[name].load()
        elif ":" in name:
            module, _, attribute = name.partition(":")
            found = getattr(importlib.import_module(module), attribute)
        else:
            there = ", ".join(sorted(installed)) or "none"
            raise CloudNotFound(
                f"cloud-provider: there is no {name!r}; installed: {there}; an adapter of your own is named as "
                "module:factory"
            )
    except (ImportError, AttributeError) as error:
        raise CloudNotFound(f"cloud-provider: {name!r} cannot be loaded: {error}") from error
    return cast("CloudFactory", found)
