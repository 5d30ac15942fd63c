"""Provider ids of EC2 instances, of Fargate nodes, and of machines that an Auto Scaling group still lacks."""

from __future__ import annotations

import re
from typing import Final

from kubetide.ports.errors import CloudError

PLACEHOLDER: Final = "i-placeholder"

_PREFIX: Final = "aws:///"
_INSTANCE: Final = re.compile(r"aws:///[-0-9a-z]*/[-0-9a-z]*(?:/[-0-9a-z.]*)?")
_PLACEHOLDER: Final = re.compile(r"aws:///[-0-9a-z]*/" + PLACEHOLDER)
_REGION: Final = re.compile(r"[a-z]+(?:-[a-z]+)+-[0-9]+")


def instance_name(provider_id: str) -> str:
    """Return the instance's name in ``aws:///ZONE/NAME``. Raises CloudError for an id of another form."""
    if not _INSTANCE.fullmatch(provider_id) and not _PLACEHOLDER.match(provider_id):
        raise CloudError(f"wrong id: expected format aws:///<zone>/<name>, got {provider_id}")
    return provider_id.removeprefix(_PREFIX).split("/")[1]


def provider_id(zone: str, instance: str) -> str:
    """Return what a node of that instance has in ``spec.providerID``."""
    return f"{_PREFIX}{zone}/{instance}"


def placeholder_name(group: str, number: int) -> str:
    """Return the name that stands for the machine of that number, which the group asks for and has not."""
    return f"{PLACEHOLDER}-{group}-{number}"


def is_placeholder(provider_id: str) -> bool:
    """Return whether this is the id of a machine that is asked for and does not exist yet."""
    return _PLACEHOLDER.match(provider_id) is not None


def region_of(zone: str) -> str:
    """Return the region of a zone, of a local zone (``us-west-2-lax-1a``) and of a Wavelength zone too."""
    found = _REGION.match(zone)
    return found[0] if found else zone[:-1]
