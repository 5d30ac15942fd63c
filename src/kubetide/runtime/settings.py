"""Upstream's flags, by their own names, as the settings of the loops.

The flags of kube-controller-manager's HPA controller and of Cluster Autoscaler are one table here; a
scenario names them under ``flags:``. Names and defaults are upstream's (see each loop's
``settings.py``); ours are listed there last.
"""

from __future__ import annotations

import difflib
import math
import typing
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from kubetide.horizontal.settings import FeatureGates
from kubetide.horizontal.settings import Settings as HorizontalSettings
from kubetide.nodes.demand import check_sources
from kubetide.nodes.expander import parse_expanders
from kubetide.nodes.settings import Settings as NodesSettings
from kubetide.ports.errors import KubetideError
from kubetide.units.time import Duration, parse_duration

Value = str | int | float | bool
S = TypeVar("S", HorizontalSettings, NodesSettings)


class FlagError(KubetideError):
    """A flag that does not exist or whose value cannot be read; the text names it and the fix."""


class LoopSettings(NamedTuple):
    """The settings of each loop."""

    horizontal: HorizontalSettings
    nodes: NodesSettings


_HORIZONTAL = {
    "concurrent-horizontal-pod-autoscaler-syncs": "concurrent_syncs",
    "horizontal-pod-autoscaler-sync-period": "sync_period",
    "horizontal-pod-autoscaler-downscale-stabilization": "downscale_stabilization",
    "horizontal-pod-autoscaler-tolerance": "tolerance",
    "horizontal-pod-autoscaler-cpu-initialization-period": "cpu_initialization_period",
    "horizontal-pod-autoscaler-initial-readiness-delay": "initial_readiness_delay",
    "horizontal-pod-autoscaler-metrics-status-period": "metrics_status_period",
    # Of both loops
    "max-cache-age": "max_cache_age",
    "max-relist-loss": "max_relist_loss",
    "relist-hold": "relist_hold",
}
WITHOUT_FLAG = frozenset({"provider", "gpu_label", "seed", "advises"})
"""Fields of the node loop's settings that no flag sets: the cloud, the run's seed and ``act`` say them."""

_NODES = {
    field.replace("_", "-"): field for field in NodesSettings.__struct_fields__ if field not in WITHOUT_FLAG
}
_SHARES = ("-threshold", "-ratio", "-loss")
"""Ends of the names of numbers that are shares."""

_FEATURE_GATES = "feature-gates"
_GATES = {
    "HPAConfigurableTolerance": "configurable_tolerance",
    "HPAScaleToZero": "scale_to_zero",
    "PodLevelResources": "pod_level_resources",
}


def flag_names() -> list[str]:
    """Gives the names of all flags, sorted."""
    return sorted({_FEATURE_GATES, *_HORIZONTAL, *_NODES})


def is_switch(name: str) -> bool:
    """Whether a flag is true or false, so that its name alone means true."""
    field = _NODES.get(name)
    return field is not None and typing.get_type_hints(NodesSettings)[field] is bool


def is_list(name: str) -> bool:
    """Whether a flag takes several values, so that giving it again appends: lists, and ``--feature-gates``.

    Source: pflag's StringSlice and MapStringBool, which upstream's flags are made of.
    """
    fields = ((_NODES, NodesSettings), (_HORIZONTAL, HorizontalSettings))
    return name == _FEATURE_GATES or any(
        name in table and typing.get_origin(typing.get_type_hints(model)[table[name]]) is tuple
        for table, model in fields
    )


def parse_flags(flags: Mapping[str, Value]) -> LoopSettings:
    """Gives the settings that the flags state, upstream's defaults for the rest.

    A leading ``--`` is allowed and underscores are read as dashes, as upstream does.
    Raises: FlagError.
    """
    horizontal: dict[str, Any] = {}
    nodes: dict[str, Any] = {}
    for given, value in flags.items():
        name = given.removeprefix("--").replace("_", "-")
        if name in _HORIZONTAL:
            field = _HORIZONTAL[name]
            horizontal[field] = _value(name, value, HorizontalSettings, field)
        if name in _NODES:
            field = _NODES[name]
            nodes[field] = _value(name, value, NodesSettings, field)
        if name == _FEATURE_GATES:
            horizontal["gates"] = _gates(str(value))
        elif name not in _HORIZONTAL and name not in _NODES:
            near = difflib.get_close_matches(name, flag_names(), n=1)
            hint = f"did you mean --{near[0]}?" if near else "see docs/settings.md for the flags there are"
            raise FlagError(f"--{name}: unknown flag; {hint}")
    made = LoopSettings(_make(HorizontalSettings, horizontal), _make(NodesSettings, nodes))
    try:
        parse_expanders(made.nodes.expander)
        check_sources(made.nodes.demand_sources)
    except ValueError as error:
        raise FlagError(str(error)) from error
    return made


def _gates(text: str) -> FeatureGates:
    """Reads ``Gate=true,Other=false``, upstream's form of --feature-gates."""
    gates: dict[str, bool] = {}
    for part in text.split(","):
        name, _, value = part.strip().partition("=")
        if name not in _GATES:
            raise FlagError(f"--{_FEATURE_GATES}: unknown gate `{name}`; there are {', '.join(_GATES)}")
        if value.lower() not in {"true", "false"}:
            raise FlagError(
                f"--{_FEATURE_GATES}: {part.strip()!r} cannot be read; write {name}=true or false"
            )
        gates[_GATES[name]] = value.lower() == "true"
    return FeatureGates(**gates)


def _make(model: type[S], fields: Mapping[str, Any]) -> S:
    try:
        return model(**fields)
    except ValueError as error:
        raise FlagError(str(error)) from error


def _value(name: str, value: Value, model: type[msgspec.Struct], field: str) -> Any:
    wanted = typing.get_type_hints(model)[field]
    try:
        if wanted is Duration:
            return parse_duration(str(value))
        if typing.get_origin(wanted) is tuple:
            return tuple(part for part in str(value).split(",") if part)
        if wanted is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        found = msgspec.convert(value, wanted, strict=False)
    except (ValueError, KeyError, msgspec.ValidationError) as error:
        raise FlagError(f"--{name}: {value!r} cannot be read; it takes {_word(wanted)}") from error
    if wanted is float:
        _check_range(name, found)
    return found


def _check_range(name: str, value: float) -> None:
    most = 100.0 if name.endswith("-percentage") else 1.0 if name.endswith(_SHARES) else math.inf
    if not 0 <= value <= most or math.isinf(value):
        words = "0 or more and finite" if math.isinf(most) else f"from 0 to {most:g}"
        raise FlagError(f"--{name}: {value:g} must be {words}")


def _word(wanted: Any) -> str:
    if wanted is Duration:
        return "a duration such as 10m or 1h30m"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(wanted, "text")
