"""The flags of the VPA programs as tables of the loops' entries.

A flag has upstream's name. Where that name means something else in another loop, or nothing without its program's,
it begins with ``vpa-`` in ``kubetide run``: ``--vpa-feature-gates``. Upstream's own commands take the bare name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from kubetide.loop import FlagError, FlagTable, flags_of
from kubetide.vertical.flags import read_gates
from kubetide.vertical.gates import FeatureGates

S = TypeVar("S", bound=msgspec.Struct)

PREFIX: Final = "vpa-"
PREFIXED: Final = frozenset(
    {
        "advise-selector",
        "compatibility",
        "feature-gates",
        "fit-node-groups",
        "forget-pods-first",
        "leave-to-hpa",
        "oom-age-by-window",
        "oom-lower-bound",
        "port",
        "rollback-window",
        "storage",
        "wait-for-samples",
    }
)
"""Flags that carry the prefix in ``kubetide run``."""

_NUMBERS = frozenset({"eviction-rate-limit", "oom-bump-up-ratio", "pod-update-threshold"})
"""Flags that take any number, whatever they are called."""


def run_name(flag: str) -> str:
    """Return the name in ``kubetide run`` of a flag of a VPA program."""
    return f"{PREFIX}{flag}" if flag in PREFIXED else flag


def read_feature_gates(text: str) -> FeatureGates:
    """Return the gates that ``--vpa-feature-gates`` names. Raises: FlagError."""
    try:
        return read_gates(text)
    except ValueError as error:
        raise FlagError(f"--{PREFIX}{str(error).removeprefix('--')}") from error


def flag_table(
    model: type[S],
    *,
    without: frozenset[str],
    gates: tuple[str, Callable[[str], Any]],
    check: Callable[[S], None] = lambda _: None,
) -> FlagTable[S]:
    """Return the table of a program's settings.

    Args:
        without: Fields that are no flags of the loop.
        gates: The field that ``feature-gates`` sets, and what reads it.
    """
    fields: dict[str, str] = {
        run_name(flag): field for flag, field in flags_of(model, without=without | {gates[0]}).items()
    }
    fields[run_name("feature-gates")] = gates[0]
    readers: Mapping[str, Callable[[str], Any]] = {run_name("feature-gates"): gates[1]}
    return FlagTable(model, fields, readers=readers, check=check, numbers=_NUMBERS)
