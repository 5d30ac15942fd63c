"""A group as far as its cloud could be read, and what the loop is shown of it."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable, Mapping
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from kubetide.ports.cloud import GroupOptions, Instance, NodeGroup, NodeTemplate, Offering
from kubetide.ports.errors import CloudError

T = TypeVar("T")


class GroupReading(NamedTuple):
    """One group; each part is there, or its error says why not.

    ``stateless`` are the provider ids of instances whose state the cloud does not say; they count as running.
    """

    id: str
    min_size: int
    max_size: int
    target: int | None = None
    target_error: str = ""
    instances: tuple[Instance, ...] | None = None
    instances_error: str = ""
    stateless: frozenset[str] = frozenset()
    template: NodeTemplate | None = None
    template_error: str = ""
    options: GroupOptions | None = None
    warnings: tuple[str, ...] = ()
    offerings: tuple[Offering, ...] | None = None
    debug: str = ""
    autoprovisioned: bool = False


async def attempt(call: Awaitable[T]) -> tuple[T | None, str]:
    """Return the answer and no text, or None and why there is none."""
    try:
        return await call, ""
    except CloudError as error:
        return None, str(error) or type(error).__name__


def group_of_reading(reading: GroupReading, earlier: Mapping[str, NodeGroup]) -> NodeGroup:
    """Return the view of a group; the earlier one, marked stale, where size or instances cannot be read."""
    trouble = reading.target_error or reading.instances_error
    if trouble and reading.id in earlier:
        return replace(earlier[reading.id], stale=trouble)
    if trouble:
        return unread_group(reading.id, trouble, reading.debug)
    priced = [one.price_per_hour for one in reading.offerings or () if one.price_per_hour is not None]
    return NodeGroup(
        id=reading.id,
        min_size=reading.min_size,
        max_size=reading.max_size,
        target_size=reading.target or 0,
        instances=reading.instances or (),
        template=reading.template,
        template_error=reading.template_error,
        options=reading.options,
        price_per_hour=priced[0] if priced else None,
        offerings=reading.offerings,
        warnings=reading.warnings or None,
        debug=reading.debug,
        autoprovisioned=reading.autoprovisioned,
    )


def unread_group(group_id: str, trouble: str, debug: str) -> NodeGroup:
    """Return the view of a group of which nothing is known yet: it cannot grow, its maximum is shown as 0."""
    return NodeGroup(id=group_id, template_error=trouble, debug=debug, stale=trouble)


class ShownGroups:
    """What the loop was shown of each group; a group that cannot be read is shown as it was."""

    def __init__(self) -> None:
        self._earlier: dict[str, NodeGroup] = {}

    def show(self, readings: Iterable[GroupReading]) -> list[NodeGroup]:
        """Return the view of each group, by id."""
        groups = [group_of_reading(one, self._earlier) for one in readings]
        self._earlier = {group.id: group for group in groups}
        return sorted(groups, key=lambda group: group.id)
