"""Autoscaling options of a group, as clouds hold them in tags: name to text.

Source: cluster-autoscaler, ``node-template/autoscaling-options`` of the cloud providers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kubetide.clouds.go_numbers import go_bool, go_float
from kubetide.ports.cloud import GroupOptions
from kubetide.units.time import TimeFormatError, parse_duration


def _duration(text: str) -> str | None:
    try:
        parse_duration(text)
    except TimeFormatError:
        return None
    return text


_READERS: Mapping[str, tuple[str, Callable[[str], Any], str]] = {
    "scaledownutilizationthreshold": ("scale_down_utilization_threshold", go_float, "a number"),
    "scaledowngpuutilizationthreshold": ("scale_down_gpu_utilization_threshold", go_float, "a number"),
    "scaledownunneededtime": ("scale_down_unneeded_time", _duration, "a duration such as 10m"),
    "scaledownunreadytime": ("scale_down_unready_time", _duration, "a duration such as 20m"),
    "maxnodeprovisiontime": ("max_node_provision_time", _duration, "a duration such as 15m"),
    "maxnodestartuptime": ("max_node_startup_time", _duration, "a duration such as 15m"),
    "ignoredaemonsetsutilization": ("ignore_daemonsets_utilization", go_bool, "true or false"),
}
BASIC_OPTIONS = (
    "scaledownutilizationthreshold",
    "scaledowngpuutilizationthreshold",
    "scaledownunneededtime",
    "scaledownunreadytime",
)
"""The four options that every provider with options reads."""


def read_options(raw: Mapping[str, str], names: Collection[str]) -> tuple[GroupOptions, tuple[str, ...]]:
    """Return the options of these names, and one sentence for each value that cannot be read.

    A value that cannot be read leaves the flag's value in force.
    """
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for name in sorted(names):
        if name not in raw:
            continue
        field, read, shape = _READERS[name]
        value = read(raw[name])
        if value is None:
            warnings.append(f"autoscaling option {name}={raw[name]!r} is not {shape}; the flag's value holds")
        else:
            found[field] = value
    return GroupOptions(**found), tuple(warnings)
