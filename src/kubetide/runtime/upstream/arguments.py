"""Parses arguments by the rules of pflag; errors are collected instead of ending the parse.

Source: pflag v1.0.10, with component-base's name normalization (underscores are dashes).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kubetide.runtime.upstream.table import Flag
from kubetide.runtime.upstream.values import read

_REMOVED: Final = {
    "configmap": "leave it out, as settings are given by flags alone",
    "gce-expander-ephemeral-storage-support": "leave it out, as ephemeral storage always counts",
    "max-empty-bulk-delete": "give --max-scale-down-parallelism",
    "parallel-drain": "leave it out, as nodes are always drained in parallel",
    "scale-down-delay": "give --scale-down-delay-after-add, and where needed -after-delete and -after-failure",
    "scale-down-underutilized-time": "give --scale-down-unneeded-time",
    "verify-unschedulable-pods": "leave it out, as pods that fit existing nodes are always passed over",
}
"""Flags of older versions that manifests still have, and what to do.

Source: Cluster Autoscaler, flags of ``main.go`` from 0.3 on that later versions lack, and notes of releases.
"""


@dataclass
class Arguments:
    """The parsed arguments.

    Attributes:
        values: Of each flag that is given, by name: the last one, of a list all of them.
        stray: Arguments that belong to no flag, which upstream passes over.
        problems: A sentence for each flag that is unknown, lacks a value or cannot be read.
        asks_for_help: Whether ``--help`` or ``-h`` is among them.
    """

    values: dict[str, Any] = field(default_factory=dict)
    stray: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    asks_for_help: bool = False


def parse_arguments(arguments: Iterable[str], flags: Mapping[str, Flag]) -> Arguments:
    """Return the parsed arguments: ``--name=value``, ``--name value``, ``--switch``, ``-v=4``, ``-v4``, ``-v 4``."""
    parser = _Parser(flags, list(arguments))
    parser.run()
    return parser.found


class _Parser:
    def __init__(self, flags: Mapping[str, Flag], left: list[str]) -> None:
        self._flags = flags
        self._short = {name: flag for name, flag in flags.items() if len(name) == 1}
        self._left = left
        self.found = Arguments()

    def run(self) -> None:
        while self._left:
            argument = self._left.pop(0)
            if argument == "--":
                self.found.stray += self._left
                return
            if argument.startswith("--"):
                self._long(argument)
            elif argument.startswith("-") and argument != "-":
                self._shorthand(argument)
            else:
                self.found.stray.append(argument)

    def _long(self, argument: str) -> None:
        given, equals, value = argument[2:].partition("=")
        if not given or given.startswith("-"):
            self.found.problems.append(f"{argument}: is no flag; write --name=value")
            return
        name = given.replace("_", "-")
        flag = self._flags.get(name)
        if flag is None and name == "help":
            self.found.asks_for_help = True
        elif flag is None:
            self.found.problems.append(f"--{given}: unknown flag{nearest(name, self._flags)}")
            if not equals:
                self._drop_value()
        elif equals:
            self._take(flag, value)
        else:
            self._take_next(flag, f"--{given}")

    def _shorthand(self, argument: str) -> None:
        letters = argument[1:]
        flag = self._short.get(letters[0])
        if flag is None:
            name, equals, _ = letters.partition("=")
            if name in {"h", "help"}:
                self.found.asks_for_help = True
                return
            known = name.replace("_", "-") in self._flags
            hint = f"; write --{name} with two dashes" if known else nearest(name, self._flags)
            self.found.problems.append(f"-{name}: unknown flag{hint}")
            if not equals:
                self._drop_value()
        elif letters[1:2] == "=" and len(letters) > 2:
            self._take(flag, letters[2:])
        elif len(letters) > 1:
            self._take(flag, letters[1:])
        else:
            self._take_next(flag, argument)

    def _drop_value(self) -> None:
        """Drop what is most likely the value of an unknown flag."""
        if self._left and not self._left[0].startswith("-"):
            del self._left[0]

    def _take_next(self, flag: Flag, given: str) -> None:
        if flag.is_switch:
            self._take(flag, "true")
        elif self._left:
            self._take(flag, self._left.pop(0))
        else:
            self.found.problems.append(f"{given}: a value is missing; write {given}=value")

    def _take(self, flag: Flag, text: str) -> None:
        try:
            value = read(flag.kind, text)
        except ValueError as error:
            self.found.problems.append(f"--{flag.name}={text}: {error}")
            return
        earlier = self.found.values.get(flag.name, ()) if flag.is_list else ()
        self.found.values[flag.name] = (*earlier, *value) if flag.is_list else value


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a hint: what to give in the place of a flag that upstream has removed, else the most similar flag."""
    if name in _REMOVED:
        return f"; upstream has removed it: {_REMOVED[name]}"
    near: Sequence[str] = difflib.get_close_matches(name, [one for one in names if len(one) > 1], n=1)
    return (
        f"; did you mean --{near[0]}?" if near else "; see docs/cluster-autoscaler.md for the flags there are"
    )
