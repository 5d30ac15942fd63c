"""``most-pods``: the group whose new nodes would hold most pods."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.nodes.expander.base import Option


def most_pods(options: Sequence[Option]) -> list[Option]:
    """Keeps the options that help most pods. Source: Cluster Autoscaler."""
    most = max(len(option.pods) for option in options)
    return [option for option in options if len(option.pods) == most]
