"""From the selector of an External metric to a question in PromQL.

The metric's name and labels are data: every one is quoted and escaped, so that none can end the selector it stands in.
Source: Prometheus 3, querying basics (string literals, matchers, anchored RE2).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kubetide.units.selectors import Requirement, Selector, SelectorError
from kubetide.units.time import Duration, TimeFormatError, parse_duration, seconds

SOURCE = "horizontal.kubetide.io/source"
AVERAGE_OVER = "horizontal.kubetide.io/average-over"
PROMETHEUS = "prometheus"

_LEGACY_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_SPECIAL = re.compile(r"[\\.+*?()|\[\]{}^$-]")
_LONGEST = seconds(24 * 3600)


class PromQuestion(NamedTuple):
    """What Prometheus is asked.

    Attributes:
        query: An instant vector selector.
        over: For so long back the values of each series are averaged; None takes the newest.
    """

    query: str
    over: Duration | None = None


def prometheus_question(metric: str, selector: str) -> PromQuestion | None:
    """Return the question that a metric's selector asks of Prometheus; None where it asks another source.

    Raises: ValueError that names what of the selector has no form in PromQL.
    """
    try:
        requirements = Selector.parse(selector).requirements if selector else ()
    except SelectorError:
        return None
    source = next((one for one in requirements if one.key == SOURCE), None)
    if source is None or source.values != (PROMETHEUS,) or source.operator not in {"=", "==", "in"}:
        return None
    over = next((one for one in requirements if one.key == AVERAGE_OVER), None)
    # A selector may say several things of one label.
    labels = (one for one in requirements if one.key not in {SOURCE, AVERAGE_OVER})
    matchers = [f"__name__={quoted(metric)}", *(_matcher(one) for one in labels)]
    return PromQuestion(f"{{{','.join(matchers)}}}", None if over is None else _period(over))


def quoted(text: str) -> str:
    """Return a string literal of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r")
    return f'"{escaped}"'


def _period(requirement: Requirement) -> Duration:
    text = requirement.values[0] if requirement.values else ""
    try:
        period = parse_duration(text)
    except TimeFormatError:
        period = Duration(0)
    if requirement.operator not in {"=", "=="} or not 0 < period <= _LONGEST:
        raise ValueError(f'{AVERAGE_OVER}: "{text}" is not read; write a duration up to 24h, such as 5m')
    return period


def _matcher(requirement: Requirement) -> str:
    key = requirement.key if _LEGACY_LABEL.fullmatch(requirement.key) else quoted(requirement.key)
    match requirement.operator:
        case "=" | "==":
            return f"{key}={quoted(requirement.values[0])}"
        case "!=":
            return f"{key}!={quoted(requirement.values[0])}"
        case "in":
            return f"{key}=~{_any_of(requirement.values)}"
        case "notin":
            return f"{key}!~{_any_of(requirement.values)}"
        case "exists":
            return f'{key}!=""'
        case "!":
            return f'{key}=""'
    raise ValueError(f"{requirement}: comparing a label's value as a number has no form in PromQL")


def _any_of(values: tuple[str, ...]) -> str:
    """Return an expression that matches one of the values as it stands."""
    return quoted("|".join(_SPECIAL.sub(r"\\\g<0>", value) for value in sorted(values)))
