"""Flags by upstream's names, as the fields of a loop's settings."""

from __future__ import annotations

import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

import msgspec

from kubetide.ports.errors import KubetideError
from kubetide.units.time import Duration, format_duration, parse_duration

Value = str | int | float | bool
_LIMIT: Final = 1 << 63
S = TypeVar("S", bound=msgspec.Struct)
T = TypeVar("T", bound=int)

_SHARES = ("-threshold", "-ratio", "-loss")
"""Ends of the names of numbers that are shares."""


class FlagError(KubetideError):
    """An unknown flag, or a value that cannot be read; the text names it and the fix."""


def flags_of(model: type[msgspec.Struct], *, without: frozenset[str] = frozenset()) -> dict[str, str]:
    """Return the fields of a settings struct by the names of their flags: dashes for underscores."""
    return {name.replace("_", "-"): name for name in model.__struct_fields__ if name not in without}


@dataclass(frozen=True)
class FlagTable(Generic[S]):
    """The flags of one loop.

    Attributes:
        model: The loop's settings.
        fields: The field that each flag sets, by the flag's name without dashes before it.
        readers: How flags of a form of their own are read, by name; these raise FlagError.
        numbers: Flags that are any number, also one below 0 or a ratio above 1.
        check: Called with the settings; raises ValueError for values that do not go together.
    """

    model: type[S]
    fields: Mapping[str, str]
    readers: Mapping[str, Callable[[str], Any]] = field(default_factory=lambda: MappingProxyType({}))
    check: Callable[[S], None] = lambda _: None
    numbers: frozenset[str] = frozenset()

    def is_switch(self, name: str) -> bool:
        """Return whether the flag is boolean, so that its name alone means true."""
        field_type = self.fields.get(name)
        if field_type is None or name in self.readers:
            return False
        return typing.get_type_hints(self.model)[field_type] is bool

    def is_list(self, name: str) -> bool:
        """Return whether the flag takes several values, so that repeating it appends.

        Source: pflag's StringSlice and MapStringBool, which upstream's flags are made of.
        """
        field_type = self.fields.get(name)
        if field_type is None:
            return False
        return (
            name in self.readers or typing.get_origin(typing.get_type_hints(self.model)[field_type]) is tuple
        )

    def parse(self, flags: Mapping[str, Value]) -> S:
        """Return the settings of the flags; other loops' flags are ignored. Raises FlagError."""
        values = {
            self.fields[name]: self._read(name, value) for name, value in flags.items() if name in self.fields
        }
        try:
            made = self.model(**values)
            self.check(made)
        except ValueError as error:
            raise FlagError(str(error)) from error
        return made

    def _read(self, name: str, value: Value) -> Any:
        reader = self.readers.get(name)
        if reader is not None:
            return reader(str(value))
        field_type = typing.get_type_hints(self.model)[self.fields[name]]
        return read_value(name, value, field_type, checked=name not in self.numbers)


class NoSettings(msgspec.Struct, frozen=True):
    """The settings of a loop without flags."""


NO_FLAGS: Final = FlagTable(NoSettings, {})


def read_value(name: str, value: Value, field_type: Any, *, checked: bool = True) -> Any:
    """Return a flag's value as that type. Raises FlagError."""
    try:
        if field_type is Duration:
            return _not_negative(name, parse_duration(str(value)), format_duration, checked=checked)
        if typing.get_origin(field_type) is tuple:
            return tuple(part for part in str(value).split(",") if part)
        if field_type is str and isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)  # YAML reads a version such as 1.37 as a number
        if field_type is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        found = msgspec.convert(value, field_type, strict=False)
    except (ValueError, KeyError, msgspec.ValidationError) as error:
        raise FlagError(f"--{name}: {value!r} cannot be read; it takes {_word(field_type)}") from error
    if field_type is int:
        if not -_LIMIT <= found < _LIMIT:
            raise FlagError(f"--{name}: {found} does not fit into 64 bits")
        _not_negative(name, found, str, checked=checked)
    if field_type is float and checked:
        _check_range(name, found)
    return found


def _not_negative(name: str, value: T, text: Callable[[T], str], *, checked: bool) -> T:
    if checked and value < 0:
        raise FlagError(f"--{name}: {text(value)} is negative; give 0 or more")
    return value


def _check_range(name: str, value: float) -> None:
    most = 100.0 if name.endswith("-percentage") else 1.0 if name.endswith(_SHARES) else math.inf
    if not 0 <= value <= most or math.isinf(value):
        words = "0 or more and finite" if math.isinf(most) else f"from 0 to {most:g}"
        raise FlagError(f"--{name}: {value:g} must be {words}")


def _word(field_type: Any) -> str:
    if field_type is Duration:
        return "a duration such as 10m or 1h30m"
    return {bool: "true or false", int: "a whole number", float: "a number"}.get(field_type, "text")
