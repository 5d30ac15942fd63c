"""Which cloud: adapters by name, loaded only when they are named.

An adapter is a factory ``(config, clock) -> async context manager of a Cloud``: ``config`` is the
text of ``--cloud-config`` (a path, or empty), and the cloud is open as long as the context is. A
package offers it as an entry point of the group ``kubetide.clouds``; one that is not packaged is
named as ``module:factory``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import cast

from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.plugins import Plugin, load_plugin

GROUP = "kubetide.clouds"
CloudFactory = Callable[[str, Clock], AbstractAsyncContextManager[Cloud]]


def cloud_factory(name: str) -> tuple[Plugin, CloudFactory]:
    """Return which plug-in a name means, and its adapter. Raises: PluginNotUsable."""
    plugin, factory = load_plugin(GROUP, name, "cloud-provider")
    return plugin, cast("CloudFactory", factory)
