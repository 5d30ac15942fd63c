"""``--node-group-auto-discovery`` of GCE and Azure: ``DISCOVERER:key=value,key=value``.

Source: cluster-autoscaler cloudprovider/gce and cloudprovider/azure.
"""

from __future__ import annotations

from collections.abc import Iterator

from kubetide.ports.errors import CloudError


def pairs_of(spec: str, discoverer: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of each pair. Raises CloudError that quotes the wrong part, once that is reached."""
    asked, colon, pairs = spec.partition(":")
    if not colon or ":" in pairs:
        raise CloudError(f'spec "{spec}" should be discoverer:key=value,key=value')
    if asked != discoverer:
        raise CloudError(f"unsupported discoverer specified: {asked}")
    for pair in pairs.split(","):
        parts = pair.split("=")
        if len(parts) != 2:
            raise CloudError(f"invalid key=value pair [{' '.join(parts)}]")
        yield parts[0], parts[1]
