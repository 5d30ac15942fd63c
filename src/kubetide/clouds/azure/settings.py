"""What the provider manages, and its switches, from upstream's words."""

from __future__ import annotations

from kubetide.clouds.azure.config import AzureConfig
from kubetide.clouds.azure.discovery import SetDiscovery, parse_discovery
from kubetide.clouds.common.node_spec import NodeSpec
from kubetide.clouds.common.options import (
    SCALE_DOWN_GPU_UTILIZATION,
    SCALE_DOWN_UNNEEDED,
    SCALE_DOWN_UNREADY,
    SCALE_DOWN_UTILIZATION,
)
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.objects.base import ApiStruct
from kubetide.units.time import Duration, minutes, seconds

OPTIONS = (SCALE_DOWN_UTILIZATION, SCALE_DOWN_GPU_UTILIZATION, SCALE_DOWN_UNNEEDED, SCALE_DOWN_UNREADY)
"""The autoscaling options that this provider reads of a set's tags."""
_SETS_FOR, _MACHINES_FOR = minutes(1), minutes(5)


class AzureSettings(ApiStruct):
    """What the provider manages, and its switches.

    Attributes:
        nodes: Sets named by ``--nodes``; they are never dropped.
        discovery: Which further sets are managed.
        sets_for: How long a list of sets holds.
        spot_for: How long the size of a spot set holds.
        machines_for: How long a list of a set's machines holds.
        machines_jitter: By how much less at most, so that not all sets are listed at the same time.
        flexible: Whether sets of flexible orchestration may be managed.
        force_delete: Whether machines are deleted by force where that is possible.
        fast_delete: Whether a machine whose provisioning failed counts as never made.
        detailed_cse: Whether a failed script extension counts as a failed machine.
        strict: Whether nothing is assumed of sizes and states before the API says it.
        predict_labels: Whether templates have the labels that AKS gives nodes.
        etag: Whether a new size holds only for the set as it was read.
    """

    nodes: tuple[NodeSpec, ...] = ()
    discovery: tuple[SetDiscovery, ...] = ()
    sets_for: Duration = _SETS_FOR
    spot_for: Duration = _SETS_FOR
    machines_for: Duration = _MACHINES_FOR
    machines_jitter: Duration = Duration(0)
    flexible: bool = False
    force_delete: bool = False
    fast_delete: bool = False
    detailed_cse: bool = False
    strict: bool = False
    predict_labels: bool = True
    etag: bool = False


def settings_of(config: AzureConfig, nodes: tuple[str, ...], discovery: tuple[str, ...]) -> AzureSettings:
    """Return the settings of a configuration, ``--nodes`` and ``--node-group-auto-discovery``. Raises CloudError."""
    sets_for = _duration(config, "vmssCacheTTLInSeconds", _SETS_FOR)
    return AzureSettings(
        nodes=parse_node_specs(nodes),
        discovery=tuple(parse_discovery(spec) for spec in discovery),
        sets_for=sets_for,
        spot_for=_duration(config, "getVmssSizeRefreshPeriod", sets_for),
        machines_for=_duration(config, "vmssVirtualMachinesCacheTTLInSeconds", _MACHINES_FOR),
        machines_jitter=_duration(config, "vmssVmsCacheJitter", Duration(0)),
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
