"""``priority``: the group with the highest priority in a ConfigMap of regular expressions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kubetide.nodes.expander.base import Context, ExpanderFailure, Option, Warned
from kubetide.nodes.facts.priorities import PRIORITIES_KEY, PRIORITY_MAP
from kubetide.units.regex import Pattern, PatternError, compile_pattern

PRIORITY: Final = "priority"

Priorities = dict[int, list[Pattern]]
_INVALID: Final = "PriorityConfigMapInvalid"
_NONE_MATCHED: Final = "PriorityConfigMapNoGroupMatched"
LEAST: Final = -1
"""What is lower never wins. Source: Cluster Autoscaler, the value from which it looks for the highest."""


class PrioritiesError(ValueError):
    """The value of ``priorities`` is invalid; the message is upstream's."""


def priority(options: Sequence[Option], context: Context) -> list[Option]:
    """Return the options whose group matches the highest priority; all of them without a readable map or a match.

    Source: Cluster Autoscaler's priority expander. Expressions are searched for anywhere in the group's id, a group that
    matches several entries counts by its highest.
    """
    priorities = _read(context)
    if priorities is None:
        return list(options)
    best: list[Option] = []
    highest = LEAST
    for option in options:
        of_group = [
            value
            for value, patterns in priorities.items()
            if any(one.find(option.group.id) for one in patterns)
        ]
        if not of_group:
            message = (
                f"Priority expander: node group {option.group.id} not found in priority expander configuration. "
                "The group won't be used."
            )
            context.warned.append(Warned("PriorityConfigMapNotMatchedGroup", message))
            continue
        value = max(of_group)
        if value > highest:
            best, highest = [], value
        if value == highest:
            best.append(option)
    if best:
        return best
    message = (
        "Priority expander: no priorities info found for any of the expansion options. No options filtered."
    )
    _leave_all(context, _NONE_MATCHED, message)
    return list(options)


def _read(context: Context) -> Priorities | None:
    found = context.priority_map
    if not found.found:
        context.failed.append(ExpanderFailure(PRIORITY, ""))
        return None
    if found.priorities is None:
        message = (
            f"Wrong configmap for priority expander, doesn't contain {PRIORITIES_KEY} key. Ignoring update."
        )
        _leave_all(context, _INVALID, message)
        return None
    try:
        return read_priorities(found.priorities)
    except PrioritiesError as error:
        message = f"Wrong configuration for priority expander: {error}. Ignoring update."
        _leave_all(context, _INVALID, message)
        return None


def _leave_all(context: Context, event: str, message: str) -> None:
    context.warned.append(Warned(event, message))
    context.failed.append(ExpanderFailure(PRIORITY, message))


def read_priorities(text: str) -> Priorities:
    """Return priorities from YAML: integers to lists of regular expressions. Raises PrioritiesError (upstream's text)."""
    if not text:
        raise PrioritiesError(
            f"priority configuration in {PRIORITY_MAP} configmap is empty; please provide valid configuration"
        )
    found: Priorities = {}
    for value, patterns in sorted(_decoded(text).items()):
        for pattern in patterns:
            try:
                found.setdefault(value, []).append(compile_pattern(pattern))
            except PatternError as error:
                raise PrioritiesError(
                    f"Can't compile regexp rule for priority {value} and rule {pattern}: {error}"
                ) from error
    return found


def _decoded(text: str) -> dict[int, list[str]]:
    # Loaded where the expander is in use.
    from kubetide.nodes.expander.yaml_text import read_yaml  # noqa: PLC0415

    try:
        document = read_yaml(text)
    except (
        ValueError,
        RecursionError,
    ) as error:  # no YAML, a date or number that there is not; nested without end
        raise _wrong(f"error converting YAML to JSON: yaml: {error}") from error
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise _mistyped(document, "map[int][]string")
    found: dict[int, list[str]] = {}
    for key in sorted(document, key=_text):
        patterns = document[key]
        if isinstance(key, bool) or not isinstance(key, int | str) or not _is_int(key):
            raise _wrong(f"{_DECODING}json: cannot unmarshal number {_text(key)} into Go value of type int")
        if patterns is None:
            continue
        if not isinstance(patterns, list):
            raise _mistyped(patterns, "[]string")
        for pattern in patterns:
            if isinstance(pattern, dict | list):
                raise _mistyped(pattern, "string")
        found[int(key)] = ["" if pattern is None else _text(pattern) for pattern in patterns]
    return found


_DECODING: Final = "error unmarshaling JSON: while decoding JSON: "


def _is_int(key: int | str) -> bool:
    try:
        return -(1 << 63) <= int(key) < 1 << 63 and str(int(key)) == str(key)
    except ValueError:
        return False


def _text(value: Any) -> str:
    """Return a scalar as upstream's reader turns it into a string."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _mistyped(value: Any, go_type: str) -> PrioritiesError:
    kinds = {dict: "object", list: "array", bool: "bool", int: "number", float: "number"}
    kind = kinds.get(type(value), "string")
    return _wrong(f"{_DECODING}json: cannot unmarshal {kind} into Go value of type {go_type}")


def _wrong(detail: str) -> PrioritiesError:
    return PrioritiesError(f"Can't parse YAML with priorities in the configmap: {detail}")
