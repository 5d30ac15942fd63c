"""CEL's static types: how they are printed, and which value may stand for which.

Source: cel-go's type checker.
"""

from __future__ import annotations

from typing import NamedTuple


class Type(NamedTuple):
    """A type by name; ``arguments`` are those of lists, maps, optionals and types.

    A name of one capital letter is a parameter of an overload, and so is such a letter with a number
    behind it, which stands for one use of it.
    """

    name: str
    arguments: tuple[Type, ...] = ()

    def __str__(self) -> str:
        if not self.arguments:
            return self.name
        return f"{self.name}({', '.join(map(str, self.arguments))})"


BOOL, INT, UINT, DOUBLE = Type("bool"), Type("int"), Type("uint"), Type("double")
STRING, BYTES, NULL = Type("string"), Type("bytes"), Type("null")
DYN, ANY = Type("dyn"), Type("any")
ERROR = Type("!error!")
"""The type of what is wrong already; it goes with everything."""
DURATION, TIMESTAMP = Type("duration"), Type("timestamp")
A, B = Type("A"), Type("B")

_NULLABLE = ("any", "duration", "timestamp", "null")

Bindings = dict[str, Type]
"""What parameters stand for."""


def list_of(element: Type) -> Type:
    return Type("list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    return Type("type", (value,))


def is_parameter(given: Type) -> bool:
    return given.name[0].isupper()


def is_dynamic(given: Type) -> bool:
    """Return whether nothing is known of it before it is looked at."""
    return given.name in {"dyn", "any", "!error!"}


def fresh(given: Type, use: int) -> Type:
    """Return the type with parameters of their own for one use of an overload."""
    if is_parameter(given):
        return Type(f"{given.name}{use}")
    return Type(given.name, tuple(fresh(one, use) for one in given.arguments)) if given.arguments else given


def substitute(given: Type, bindings: Bindings, *, final: bool = False) -> Type:
    """Put in what parameters stand for; ``final`` makes dyn of those that stand for nothing."""
    if is_parameter(given):
        found = bindings.get(given.name)
        if found is None:
            return DYN if final else given
        return substitute(found, bindings, final=final)
    if not given.arguments:
        return given
    return Type(given.name, tuple(substitute(one, bindings, final=final) for one in given.arguments))


def assignable(target: Type, source: Type, bindings: Bindings) -> bool:
    """Return whether a source may stand where a target is expected; binds parameters as it goes."""
    if is_parameter(target) and target.name in bindings:
        known, given = substitute(target, bindings), substitute(source, bindings)
        if not is_parameter(known) and known != given:
            if not assignable(known, given, bindings):
                return False
            bindings[target.name] = join(substitute(known, bindings), substitute(given, bindings))
            return True
    target, source = substitute(target, bindings), substitute(source, bindings)
    if target == source:
        return True
    if is_parameter(target):
        return _bind(target, source, bindings)
    if is_parameter(source):
        return _bind(source, target, bindings)
    if is_dynamic(target) or is_dynamic(source):
        return True
    if NULL in (source, target):
        other = target if source == NULL else source
        return other.name in _NULLABLE or "." in other.name or other.name == "optional_type"
    if target.name == "type" and source.name == "type":
        return True
    if target.name != source.name or len(target.arguments) != len(source.arguments):
        return False
    pairs = zip(target.arguments, source.arguments, strict=True)
    return all(assignable(one, other, bindings) for one, other in pairs)


def _bind(parameter: Type, given: Type, bindings: Bindings) -> bool:
    if _occurs(parameter, given):
        return False
    bindings[parameter.name] = given
    return True


def _occurs(parameter: Type, given: Type) -> bool:
    return given == parameter or any(_occurs(parameter, one) for one in given.arguments)


def join(one: Type, other: Type) -> Type:
    """Return the more general of two types of which one may stand for the other."""
    if is_dynamic(one) or is_dynamic(other):
        return one if is_dynamic(one) else other
    if one == NULL:
        return other
    if one.arguments and len(one.arguments) == len(other.arguments):
        return Type(one.name, tuple(join(a, b) for a, b in zip(one.arguments, other.arguments, strict=True)))
    return one
