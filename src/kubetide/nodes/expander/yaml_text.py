"""A YAML reader that reads as upstream's and reports errors in its words."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import yaml

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(text: str) -> Any:
    """Return the first document, None without one. Raises ValueError that names the problem and its line."""
    try:
        return next(yaml.load_all(text, Loader=_LOADER), None)  # libyaml's says what upstream's says
    except yaml.YAMLError as error:
        raise ValueError(_problem(error)) from error


def repeated_keys(text: str) -> list[str]:
    """Return the keys that the first document, a mapping, has more than once, in order: the last value of each counts."""
    document = next(yaml.compose_all(text, Loader=_LOADER), None)
    if not isinstance(document, yaml.MappingNode):
        return []
    keys = Counter(key.value for key, _ in document.value if isinstance(key, yaml.ScalarNode))
    return [key for key, times in keys.items() if times > 1]


def _problem(error: yaml.YAMLError) -> str:
    """Return what is wrong and in which line, as Go's reader counts lines."""
    if not isinstance(error, yaml.MarkedYAMLError):
        return str(error)
    lines = [mark.line for mark in (error.context_mark, error.problem_mark) if mark is not None and mark.line]
    line = lines[0] + isinstance(error, yaml.scanner.ScannerError) if lines else 0
    return f"line {line}: {error.problem}" if line else str(error.problem)
