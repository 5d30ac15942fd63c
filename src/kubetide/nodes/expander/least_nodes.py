"""``least-nodes``: the group that needs the fewest new nodes."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.nodes.expander.base import Context, Option


def least_nodes(options: Sequence[Option], context: Context) -> list[Option]:
    """Keep the options with the fewest nodes. Source: Cluster Autoscaler."""
    del context
    fewest = min(option.nodes for option in options)
    return [option for option in options if option.nodes == fewest]
