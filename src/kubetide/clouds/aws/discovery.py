"""``--node-group-auto-discovery=asg:tag=K1[=V1],K2…``: Auto Scaling groups by their tags.

Source: cluster-autoscaler (Aug 2026), AWS auto discovery. The tags of all flags are joined, as upstream does: who
names the cluster in a second flag must not find the groups of other clusters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kubetide.objects.base import Json
from kubetide.ports.errors import KubetideError

_DISCOVERER: Final = "asg"
_KEY: Final = "tag"


class DiscoveryError(KubetideError):
    """A discovery flag that cannot be read; the text is upstream's."""


def parse_discovery(text: str) -> dict[str, str]:
    """Return the tags that a group must have: value by key, empty for any value. Raises DiscoveryError."""
    parts = text.split(":", 1)
    if len(parts) != 2:
        raise DiscoveryError(
            f"invalid node group auto discovery spec specified via --node-group-auto-discovery: {text}"
        )
    discoverer, rest = parts
    if discoverer != _DISCOVERER:
        raise DiscoveryError(f"unsupported discoverer specified: {discoverer}")
    key, equals, value = rest.partition("=")
    if not equals:
        raise DiscoveryError(f"invalid key=value pair [{rest}]")
    if key != _KEY:
        raise DiscoveryError(
            f'unsupported parameter key "{key}" is specified for discoverer "{discoverer}". '
            f'The only supported key is "{_KEY}"'
        )
    if not value:
        raise DiscoveryError("tag value not supplied")
    tags: dict[str, str] = {}
    for pair in value.split(","):
        name, _, held = pair.partition("=")
        tags[name] = held
    return tags


def joined(flags: Iterable[str]) -> dict[str, str]:
    """Return the tags of all flags, of which a group must have every one; a later value wins. Raises DiscoveryError."""
    return {key: value for text in flags for key, value in parse_discovery(text).items()}


def filters_of(tags: Mapping[str, str]) -> list[Json]:
    """Return the filters of DescribeAutoScalingGroups that find groups with all of these tags."""
    return [
        {"Name": f"tag:{key}", "Values": [value]} if value else {"Name": "tag-key", "Values": [key]}
        for key, value in tags.items()
    ]
