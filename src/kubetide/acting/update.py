"""Updates an object: reads it, changes it and replaces it, for which upstream's roles suffice."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.cluster import Cluster, withheld
from kubetide.ports.errors import Conflict, Withheld

_ATTEMPTS: Final = 5


async def update_object(
    cluster: Cluster, kind: Kind[Any], name: str, change: Callable[[Json], Json], *, namespace: str = ""
) -> Json:
    """Read an object, replace it by what ``change`` makes of it, and return it as it is then.

    Another's write in between leads to another try. The roles that Cluster Autoscaler's and VPA's users have grant
    ``get`` and ``update`` of what those programs write, and not ``patch``.

    Raises: NotFound; Conflict after five tries; Withheld, before anything is read: who only advises may have no
        right to.
    """
    if why := withheld(cluster):
        raise Withheld(why)
    whole = kind.untyped

    async def attempt() -> Json:
        there = await cluster.get(whole, name, namespace=namespace)
        return await cluster.replace(whole, change(there), namespace=namespace)

    for _ in range(_ATTEMPTS - 1):
        with suppress(Conflict):
            return await attempt()
    return await attempt()
