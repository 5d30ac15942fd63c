"""Every flag of Cluster Autoscaler: its type, its default, and its effect here.

The rows stand in ``cluster_autoscaler.csv``. A flag works where the node loop or the process has a setting of its
name (or of the name in the column ``target``), so a setting that is added later makes its flag work. For the others
``otherwise`` says what happens: ``no effect`` (as upstream), ``accepted`` (nothing depends on it here), ``warn``
(passed over with a warning) or ``refuse``. ``as_if`` is the value that describes what happens here, where that is
not upstream's default. ``clouds`` names the providers that read the flag, where not all of them do.

Source: Cluster Autoscaler of July and August 2026 (core 6e285e0f4b4f and 33c3f97), component-base v0.36, klog v2.140.
"""

from __future__ import annotations

import csv
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, get_origin

import msgspec

from kubetide.nodes.settings import WITHOUT_FLAG, Settings
from kubetide.runtime.configuration.run_settings import Bytes, RunSettings
from kubetide.runtime.upstream.values import LISTS, default
from kubetide.units.time import Duration

NODES: Final = "nodes"
RUN: Final = "run"
ADVISE: Final = "advise"
"""Kubetide's own flag: decide, explain, and write nothing."""

_OWN_OF_PROCESS: Final = (
    "catalog",
    "context",
    "log_format",
    "max_answer_size",
    "max_list_objects",
    "max_records_size",
    "node_group_label",
    "out",
)
"""Settings of ``kubetide run`` that upstream has no flag for and that this command takes too."""
_KINDS: Final[Mapping[Any, str]] = {
    bool: "bool",
    int: "int",
    float: "float64",
    str: "string",
    Duration: "duration",
    Bytes: "size",
}


class Status(StrEnum):
    """The effect of a flag."""

    WORKS = "works"
    NO_EFFECT = "accepted without effect, as upstream"
    ACCEPTED = "accepted"
    WARNED = "not offered: passed over with a warning"
    REFUSED = "not offered: refused"
    OWN = "kubetide's own"


_STATUS: Final[Mapping[str, Status]] = {
    "no effect": Status.NO_EFFECT,
    "accepted": Status.ACCEPTED,
    "warn": Status.WARNED,
    "refuse": Status.REFUSED,
}


@dataclass(frozen=True)
class Flag:
    """One flag.

    Attributes:
        name: Without dashes in front.
        kind: Its type, a key of ``values``.
        default: As upstream's help prints it; empty for an empty text or list.
        status: What comes of it.
        part: Whose setting it is, ``nodes`` or ``run``; empty where it sets none.
        field: The name of that setting.
        held: The value that describes what happens without a setting.
        note: Why it is not offered, or what else there is to know.
        clouds: The shipped providers that read it; empty where it does not depend on the provider.
    """

    name: str
    kind: str
    default: str
    status: Status
    part: str = ""
    field: str = ""
    held: Any = None
    note: str = ""
    clouds: frozenset[str] = frozenset()

    @property
    def is_list(self) -> bool:
        """Whether each use appends."""
        return self.kind in LISTS

    @property
    def is_switch(self) -> bool:
        """Whether the name alone means true."""
        return self.kind == "bool"


@cache
def cluster_autoscaler_flags() -> Mapping[str, Flag]:
    """Return the flags of upstream's Cluster Autoscaler by name."""
    text = files(__package__).joinpath("cluster_autoscaler.csv").read_text(encoding="utf-8")
    found = [_flag(row) for row in csv.DictReader(text.splitlines())]
    return MappingProxyType({flag.name: flag for flag in found})


@cache
def own_flags() -> Mapping[str, Flag]:
    """Return kubetide's own flags of the command by name: settings that upstream has no flag for."""
    upstream = cluster_autoscaler_flags()
    taken = {(flag.part, flag.field) for flag in upstream.values()}
    found = [Flag(ADVISE, "bool", "false", Status.OWN, held=False)]
    found += [
        _own(NODES, Settings, name)
        for name in Settings.__struct_fields__
        if name not in WITHOUT_FLAG and (NODES, name) not in taken and name.replace("_", "-") not in upstream
    ]
    found += [_own(RUN, RunSettings, name) for name in _OWN_OF_PROCESS]
    return MappingProxyType({flag.name: flag for flag in found})


def _flag(row: Mapping[str, str]) -> Flag:
    name, kind = row["flag"], row["type"]
    # A setting of the loop may read such a flag too, and nothing comes of it there.
    idle = row["otherwise"] == "no effect"
    part, field = ("", "") if idle else _setting(row["target"] or name.replace("-", "_"))
    return Flag(
        name=name,
        kind=kind,
        default=row["default"],
        status=Status.WORKS if part else _STATUS[row["otherwise"]],
        part=part,
        field=field,
        held=default(kind, row["as_if"] or row["default"]),
        note="" if part and row["otherwise"] else row["note"],
        clouds=frozenset(row["clouds"].split()),
    )


def _setting(target: str) -> tuple[str, str]:
    """Return whose setting a name is, and the name of its field; empty texts where there is none."""
    part, dot, field = target.partition(".")
    if dot:
        return part, field
    if target in Settings.__struct_fields__ and target not in WITHOUT_FLAG:
        return NODES, target
    return (RUN, target) if target in RunSettings.__struct_fields__ else ("", "")


def _own(part: str, model: type[msgspec.Struct], field: str) -> Flag:
    field_type = typing.get_type_hints(model)[field]
    kind = "comma list" if get_origin(field_type) is tuple else _KINDS.get(field_type, "string")
    return Flag(field.replace("_", "-"), kind, "", Status.OWN, part, field)
