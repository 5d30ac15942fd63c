"""Reads upstream's flags into the settings of the VPA programs.

A field is the flag of its name: ``eviction_rate_limit`` is ``--eviction-rate-limit``. As upstream's parser does,
``_`` and ``-`` in a flag are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_type_hints

import msgspec

from kubetide.units.time import Duration, parse_duration
from kubetide.vertical.gates import FeatureGates

S = TypeVar("S", bound=msgspec.Struct)

_TRUE = {"1", "t", "T", "true", "TRUE", "True"}
_FALSE = {"0", "f", "F", "false", "FALSE", "False"}
_GATES = {
    "CPUStartupBoost": "cpu_startup_boost",
    "InPlace": "in_place",
    "PerVPAConfig": "per_vpa_config",
}
_ALL = ("AllAlpha", "AllBeta")


def read_flags(model: type[S], flags: Mapping[str, str]) -> S:
    """Return the settings of the flags; others keep their defaults.

    Raises: ValueError that names the flag.
    """
    fields = {field.name: field.default for field in msgspec.structs.fields(model)}
    hints = get_type_hints(model)
    values: dict[str, Any] = {}
    for flag, text in flags.items():
        name = flag.lstrip("-").replace("-", "_")
        if name == "feature_gates":
            values["gates"] = read_gates(text)
        elif name not in fields or name == "gates":
            known = ", ".join(one.replace("_", "-") for one in sorted(fields) if one != "gates")
            raise ValueError(f"--{flag}: unknown flag; known are {known}, feature-gates")
        else:
            values[name] = _value(flag, text, hints[name], fields[name])
    return model(**values)


def read_gates(text: str) -> FeatureGates:
    """Return the gates of ``--feature-gates``. Raises: ValueError."""
    values: dict[str, bool] = {}
    for part in filter(None, text.split(",")):
        gate, _, value = part.strip().partition("=")
        switch = _switch("feature-gates", value)
        if gate == "AllAlpha":
            values = dict.fromkeys(_GATES.values(), switch) | values
        elif gate in _GATES:
            values[_GATES[gate]] = switch
        elif gate not in _ALL:
            raise ValueError(
                f"--feature-gates: unknown gate {gate!r}; known are {', '.join((*_GATES, *_ALL))}"
            )
    return FeatureGates(**values)


def _value(flag: str, text: str, annotation: Any, default: Any) -> Any:
    try:
        if annotation is Duration:
            return parse_duration(text)
        if isinstance(default, bool):
            return _switch(flag, text)
        if isinstance(default, int):
            return int(text, 0)
        if isinstance(default, float):
            return float(text)
    except ValueError as error:
        raise ValueError(f"--{flag}={text}: {error}") from error
    if isinstance(default, tuple):
        return tuple(part.strip() for part in text.split(",") if part.strip())
    return text


def _switch(flag: str, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"--{flag}: {text!r} is neither true nor false")
