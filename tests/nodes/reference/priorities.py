"""The expander `priority`: people say in a ConfigMap which groups come first."""

from __future__ import annotations

import re
from typing import Any

import yaml
from tests.nodes.reference import events
from tests.nodes.reference.world import Json, World

NAMESPACE, NAME, ENTRY = "kube-system", "cluster-autoscaler-priority-expander", "priorities"
LOWEST = -1
"""Of a group that matches no pattern of this priority or a higher one, nothing is said."""
REFUSED = {
    "(": "missing closing ): `(`",
    "[b": "missing closing ]: `[b`",
    "*a": "missing argument to repetition operator: `*`",
    "a++": "invalid nested repetition operator: `++`",
    "(?!a)": "invalid or unsupported Perl syntax: `(?!`",
}
"""Patterns of stories that Go refuses, and why; Python takes some of them."""
SYNTAX = "yaml: line 1: did not find expected ',' or ']'"
"""What Go's parser says of the only text of stories that is no YAML."""


class Unusable(Exception):
    """A ConfigMap that says nothing."""


class Unread(Exception):
    """What is wrong with the text that holds the priorities."""


def of_highest_priority(world: World, groups: list[str]) -> list[str]:
    """Return the groups of the highest priority; all if there is no usable ConfigMap, or none of them is in it.

    The ConfigMap is read anew each time.
    """
    given = world.objects.get("ConfigMap", {}).get((NAMESPACE, NAME))
    if given is None:
        return groups
    try:
        patterns = _patterns(given)
    except Unusable as error:
        events.on_priorities(world, "PriorityConfigMapInvalid", f"{error} Ignoring update.")
        return groups
    highest: dict[str, int] = {}
    for group in groups:
        found = [priority for priority, ones in patterns.items() if any(one.search(group) for one in ones)]
        highest[group] = max(found, default=LOWEST - 1)
        if not found:
            words = (
                f"node group {group} not found in priority expander configuration. The group won't be used."
            )
            events.on_priorities(world, "PriorityConfigMapNotMatchedGroup", f"Priority expander: {words}")
    best = max(highest.values(), default=LOWEST - 1)
    if best < LOWEST:
        words = "no priorities info found for any of the expansion options. No options filtered."
        events.on_priorities(world, "PriorityConfigMapNoGroupMatched", f"Priority expander: {words}")
        return groups
    return [one for one in groups if highest[one] == best]


def _patterns(given: Json) -> dict[int, list[re.Pattern[str]]]:
    text = (given.get("data") or {}).get(ENTRY)
    if text is None:
        raise Unusable(f"Wrong configmap for priority expander, doesn't contain {ENTRY} key.")
    try:
        return _parsed(text)
    except Unread as error:
        raise Unusable(f"Wrong configuration for priority expander: {error}.") from error


def _parsed(text: str) -> dict[int, list[re.Pattern[str]]]:
    if not text:
        raise Unread(
            f"priority configuration in {NAME} configmap is empty; please provide valid configuration"
        )
    try:
        loaded = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise Unread(_unread(f"error converting YAML to JSON: {SYNTAX}")) from error
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise Unread(_mistyped(loaded, "map[int][]string"))
    return {_priority(key): _compiled(_priority(key), ones) for key, ones in loaded.items()}


def _priority(key: Any) -> int:
    """Return a key as a number: upstream goes by way of JSON, where all keys are text."""
    text = str(key).lower() if isinstance(key, bool) else str(key)
    if not re.fullmatch(r"-?[0-9]+", text):
        raise Unread(_mistyped(key, "int", of=f"number {text}"))
    return int(text)


def _compiled(priority: int, ones: Any) -> list[re.Pattern[str]]:
    if not isinstance(ones, list | None):
        raise Unread(_mistyped(ones, "[]string"))
    made = []
    for one in map(_pattern, ones or ()):
        if one in REFUSED:
            why = f"error parsing regexp: {REFUSED[one]}"
            raise Unread(f"Can't compile regexp rule for priority {priority} and rule {one}: {why}")
        made.append(re.compile(one))
    return made


def _pattern(one: Any) -> str:
    """Return a pattern; numbers are taken as they stand, and nothing at all is the pattern that matches all."""
    if isinstance(one, list | dict):
        raise Unread(_mistyped(one, "string"))
    return "" if one is None else str(one)


def _mistyped(value: Any, into: str, of: str = "") -> str:
    names = {str: "string", list: "array", dict: "object", int: "number", bool: "bool"}
    kind = of or names[type(value)]
    where = "error unmarshaling JSON: while decoding JSON: json"
    return _unread(f"{where}: cannot unmarshal {kind} into Go value of type {into}")


def _unread(why: str) -> str:
    return f"Can't parse YAML with priorities in the configmap: {why}"
