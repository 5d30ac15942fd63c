"""Options of a group in the text of tags and labels: which there are, and how each value is read.

Source: cluster-autoscaler (Aug 2026), node group autoscaling options by tag.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kubetide.ports.cloud import GroupOptions
from kubetide.units.numbers import NumberError, parse_bool, parse_float
from kubetide.units.time import TimeFormatError, format_duration, parse_duration

SCALE_DOWN_UTILIZATION: Final = "scaledownutilizationthreshold"
SCALE_DOWN_GPU_UTILIZATION: Final = "scaledowngpuutilizationthreshold"
SCALE_DOWN_UNNEEDED: Final = "scaledownunneededtime"
SCALE_DOWN_UNREADY: Final = "scaledownunreadytime"
MAX_PROVISION: Final = "maxnodeprovisiontime"
MAX_STARTUP: Final = "maxnodestartuptime"
IGNORE_DAEMON_SETS: Final = "ignoredaemonsetsutilization"


class _Option(NamedTuple):
    field: str
    read: Callable[[str], Any]


def _duration(text: str) -> str:
    return format_duration(parse_duration(text))


_OPTIONS: Final[Mapping[str, _Option]] = {
    SCALE_DOWN_UTILIZATION: _Option("scale_down_utilization_threshold", parse_float),
    SCALE_DOWN_GPU_UTILIZATION: _Option("scale_down_gpu_utilization_threshold", parse_float),
    SCALE_DOWN_UNNEEDED: _Option("scale_down_unneeded_time", _duration),
    SCALE_DOWN_UNREADY: _Option("scale_down_unready_time", _duration),
    MAX_PROVISION: _Option("max_node_provision_time", _duration),
    MAX_STARTUP: _Option("max_node_startup_time", _duration),
    IGNORE_DAEMON_SETS: _Option("ignore_daemonsets_utilization", parse_bool),
}


class ReadOptions(NamedTuple):
    """Options that could be read, None if there are none, and one sentence for each that could not."""

    options: GroupOptions | None
    warnings: tuple[str, ...]


def read_options(raw: Mapping[str, str], names: Sequence[str]) -> ReadOptions:
    """Return the options of these names; a value that cannot be read leaves the flag in force.

    Args:
        raw: Value by option name, as the cloud holds them.
        names: The options that this provider reads; others in ``raw`` are ignored.
    """
    found: dict[str, Any] = {}
    warnings: list[str] = []
    for name in names:
        if name not in raw:
            continue
        option = _OPTIONS[name]
        try:
            found[option.field] = option.read(raw[name])
        except (NumberError, TimeFormatError) as error:
            warnings.append(f"option {name}: {error}; the flag stays in force")
    return ReadOptions(GroupOptions(**found) if found else None, tuple(warnings))
