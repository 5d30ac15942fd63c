"""Feature gates that the VPA programs share.

Source: vertical-pod-autoscaler 1.8.1, pkg/features.
"""

from __future__ import annotations

import msgspec


class FeatureGates(msgspec.Struct, frozen=True):
    """Upstream's gates, all alpha and off.

    Attributes:
        cpu_startup_boost: CPUStartupBoost: ``startupBoost`` counts.
        in_place: InPlace: update mode ``InPlace`` is allowed.
        per_vpa_config: PerVPAConfig: settings in a VPA object override flags.
    """

    cpu_startup_boost: bool = False
    in_place: bool = False
    per_vpa_config: bool = False
