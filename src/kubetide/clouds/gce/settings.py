"""How the GCE provider is set up: ``--cloud-config``, ``--nodes``, discovery and its own flags."""

from __future__ import annotations

OPTIONS = (
    "scaledownutilizationthreshold",
    "scaledowngpuutilizationthreshold",
    "scaledownunneededtime",
    "scaledownunreadytime",
    "maxnodeprovisiontime",
)
"""The autoscaling options that this provider reads of a template's kube-env."""
