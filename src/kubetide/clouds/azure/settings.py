"""From upstream's words to the provider's settings."""

from __future__ import annotations

from kubetide.clouds.azure.cloud import AzureSettings
from kubetide.clouds.azure.config import AzureConfig
from kubetide.clouds.azure.discovery import parse_discovery
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.units.time import Duration, minutes, seconds


def settings_of(config: AzureConfig, nodes: tuple[str, ...], discovery: tuple[str, ...]) -> AzureSettings:
    """Return the settings of a configuration, ``--nodes`` and ``--node-group-auto-discovery``. Raises CloudError."""
    return AzureSettings(
        nodes=parse_node_specs(nodes),
        discovery=tuple(parse_discovery(spec) for spec in discovery),
        sets_for=_duration(config, "vmssCacheTTLInSeconds", minutes(1)),
        machines_for=_duration(config, "vmssVirtualMachinesCacheTTLInSeconds", minutes(5)),
        flexible=config.is_on("enableVmssFlexNodes"),
        force_delete=config.is_on("enableForceDelete"),
        fast_delete=config.is_on("enableFastDeleteOnFailedProvisioning"),
        detailed_cse=config.is_on("enableDetailedCSEMessage"),
        strict=config.is_on("strictCacheUpdates"),
        predict_labels=config.is_on("enableLabelPredictionsOnTemplate"),
        etag=config.is_on("enableVMSSEtag"),
    )


def _duration(config: AzureConfig, key: str, default: Duration) -> Duration:
    return seconds(config.whole(key)) if config.whole(key) > 0 else default
