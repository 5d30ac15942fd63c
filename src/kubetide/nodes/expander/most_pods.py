"""``most-pods``: the group whose new nodes would hold the most pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.nodes.expander.base import Context, Option


def most_pods(options: Sequence[Option], context: Context) -> list[Option]:
    """Keep the options that help most pods. Source: Cluster Autoscaler."""
    del context
    most = max(len(option.pods) for option in options)
    return [option for option in options if len(option.pods) == most]
