"""Any cloud with a user's catalogue over it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from msgspec.structs import replace

from kubetide.clouds.catalog.apply import with_catalog_applied
from kubetide.clouds.catalog.rows import Catalog
from kubetide.ports.cloud import Cloud, GroupCandidate, NewGroup, NodeGroup


def with_catalog(cloud: Cloud, catalog: Catalog) -> Cloud:
    """Return the cloud, whose groups have the catalogue's prices and shapes; commands go to it unchanged."""
    return cast("Cloud", _Catalogued(cloud, catalog.of(cloud.name)))


class _Catalogued:
    def __init__(self, inner: Cloud, catalog: Catalog) -> None:
        self._inner, self._catalog = inner, catalog

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return the groups as the catalogue has them."""
        return with_catalog_applied(await self._inner.refresh(), self._catalog)

    async def group_candidates(self) -> Sequence[GroupCandidate]:
        """Return the groups that could be made as the catalogue has them."""
        found = await self._inner.group_candidates()
        groups = with_catalog_applied([one.group for one in found], self._catalog)
        return [replace(one, group=group) for one, group in zip(found, groups, strict=True)]

    async def create_group(self, group: NewGroup) -> NodeGroup:
        """Create a group, and return it as the catalogue has it."""
        return with_catalog_applied([await self._inner.create_group(group)], self._catalog)[0]
