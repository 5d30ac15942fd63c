"""Provider ids of Alibaba Cloud: ``<region>.<instance>``."""

from __future__ import annotations

from kubetide.ports.errors import CloudError


def provider_id(region: str, instance: str) -> str:
    """Return what a joined node has as ``spec.providerID``."""
    return f"{region}.{instance}"


def parse_provider_id(text: str) -> str:
    """Return the instance: what stands between the first and the second dot. Raises CloudError."""
    parts = text.split(".")
    if len(parts) < 2:
        raise CloudError(f"AliCloud: unexpected ProviderID format, providerID={text}")
    return parts[1]
