"""Provider ids of Tencent Cloud: ``qcloud:///<number of the zone>/<instance>``."""

from __future__ import annotations

import re

from kubetide.ports.errors import CloudError

_ID = re.compile(r"qcloud:///[-0-9a-z]*/([-0-9a-z]*)", re.ASCII)


def provider_id(zone_number: str, instance: str) -> str:
    """Return what a joined node has as ``spec.providerID``."""
    return f"qcloud:///{zone_number}/{instance}"


def parse_provider_id(text: str) -> str:
    """Return the instance of a provider id. Raises CloudError."""
    found = _ID.fullmatch(text)
    if found is None:
        raise CloudError(f"valid provider id: expected format qcloud:///zoneid/ins-<name>, got {text}")
    return found[1]
