"""Fields of nested values by their path: ``spec.minReplicas``, ``containers[app].image``, ``metrics[0].type``."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any

_PART = re.compile(r"\.?([^.\[\]]+)|\[([^\[\]]*)\]")


class PathError(ValueError):
    """A path without a target; the text says where it ends and what is there."""


def set_at(value: dict[str, Any], path: str, new: Any) -> None:
    """Set the value at a path; None for ``new`` removes it.

    ``[0]`` counts entries of a list, ``[app]`` is the entry of that ``name``. Mappings that are not there are made.

    Raises: PathError.
    """
    parts = _parts(path)
    *parents, last = (part for part, _ in parts)
    at: Any = value
    done = ""
    for part, (following, is_entry) in zip(parents, parts[1:], strict=True):
        is_missing = isinstance(at, dict) and at.get(part) is None
        at = _member(at, part, done)
        done += _shown(part, first=not done)
        if is_entry and is_missing:
            raise PathError(f"{done} is not set, so it has no entry [{following}]; set the whole list")
    if isinstance(at, list):
        at[_index(at, last, done)] = new
    elif not isinstance(at, dict):
        raise PathError(f"{done} is {at!r}, which has no fields")
    elif new is None:
        at.pop(last, None)
    else:
        at[last] = new


def split_name(
    rest: str, known: Iterable[str], what: str, shown: Iterable[str] | None = None
) -> tuple[str, str]:
    """Return the parts of ``NAME.FIELD``, split after the longest known name.

    Raises: PathError with the nearest of the names that are shown, by default all.
    """
    names = list(known)
    for name in sorted(names, key=len, reverse=True):
        if rest == name or rest.startswith((f"{name}.", f"{name}[")):
            return name, rest[len(name) :].removeprefix(".")
    # Names such as m5.large have dots too.
    parts = max((name.count(".") for name in names), default=0) + 1
    unknown = ".".join(rest.split(".")[:parts])
    raise PathError(f"there is no {what} `{unknown}`; {nearest(unknown, names if shown is None else shown)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return a hint with the names most similar to an unknown one."""
    names = sorted(set(known))
    near = difflib.get_close_matches(name, names, n=3)
    if near:
        return f"did you mean {', '.join(f'`{one}`' for one in near)}?"
    return f"there are {', '.join(names[:20]) or 'none'}" + (" ..." if len(names) > 20 else "")


def _parts(path: str) -> list[tuple[str, bool]]:
    """Return the parts of a path, each with whether it stands in brackets."""
    found = list(_PART.finditer(path))
    if not found or "".join(one.group() for one in found) != path:
        raise PathError(f"`{path}` is not a path; write it as a.b[0].c")
    return [(one.group(1) or one.group(2), one.group(1) is None) for one in found]


def _member(at: Any, part: str, done: str) -> Any:
    if isinstance(at, list):
        return at[_index(at, part, done)]
    if not isinstance(at, dict):
        raise PathError(f"{done} is {at!r}, which has no field {part}")
    if at.get(part) is None:
        at[part] = {}
    return at[part]


def _index(at: list[Any], part: str, done: str) -> int:
    names = [one.get("name") if isinstance(one, dict) else None for one in at]
    if part in names:
        return names.index(part)
    if part.isdigit() and int(part) < len(at):
        return int(part)
    there = ", ".join(str(name) for name in names if name) or f"0 to {len(at) - 1}" if at else "none"
    raise PathError(f"{done} has no entry [{part}]; there are {there}")


def _shown(part: str, *, first: bool) -> str:
    return part if first else f"[{part}]" if part.isdigit() else f".{part}"
