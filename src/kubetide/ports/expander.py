"""An external expander: it gets each group's option, and returns the best groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from kubetide.objects.node import Node
from kubetide.objects.pod import Pod


class Offer(NamedTuple):
    """A number of new nodes of one group, and the pods that would fit on them."""

    group: str
    nodes: int
    pods: tuple[Pod, ...]


class ExpanderService(Protocol):
    """Chooses among offers."""

    async def best_options(self, offers: Sequence[Offer], nodes: Mapping[str, Node]) -> tuple[str, ...]:
        """Return the groups of the best offers.

        Args:
            offers: What each group could do.
            nodes: What a new node of each group looks like, by group; also of groups that offer nothing.

        Raises: CloudError when there is no answer in time.
        """
        ...
