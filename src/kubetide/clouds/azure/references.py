"""Resource ids of Azure, as nodes and the API write them."""

from __future__ import annotations

import re

from kubetide.ports.errors import CloudError

PREFIX = "azure://"
_RESOURCE_GROUP = re.compile(r".*/subscriptions/.*/resourceGroups/(.+)/providers/.*", re.DOTALL)


def normalized(resource_id: str) -> str:
    """Return the id with its resource group, and nothing else, in lower case. Raises CloudError."""
    found = _RESOURCE_GROUP.fullmatch(resource_id)
    if found is None:
        raise CloudError(f'"{resource_id}" isn\'t in Azure resource ID format')
    return resource_id[: found.start(1)] + found[1].lower() + resource_id[found.end(1) :]


def last_segment(resource_id: str) -> str:
    """Return the name at the end of an id. Raises CloudError."""
    head, slash, name = resource_id.rpartition("/")
    if not slash:
        raise CloudError(f"identifier '/' not found in resource name \"{resource_id}\"")
    if not name:
        raise CloudError(f'resource name was missing from identifier "{head}/"')
    return name


def provider_id(resource_id: str) -> str:
    """Return what a joined node has as ``spec.providerID``. Raises CloudError."""
    return PREFIX + normalized(resource_id)
