"""The parts that the suites share: finding case files, choosing cases, comparing answers."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

Case = dict[str, Any]

_NO_CASES = ("bucket-table.json", "v1.7.1-expect.json")


class Selection(NamedTuple):
    """Which cases are to be run; empty means no restriction."""

    groups: tuple[str, ...] = ()
    skipped_groups: tuple[str, ...] = ()
    single_step: bool = False
    metrics: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()


class Suite(Protocol):
    """A suite is a module with these functions."""

    def cases(self, document: Any) -> Iterator[Case]:
        """Return the cases of one file; none if the file is of another kind."""
        ...

    def case_id(self, case: Case) -> str: ...

    def group(self, case: Case) -> str: ...

    def has_steps(self, case: Case) -> bool: ...

    def metric_types(self, case: Case) -> set[str]: ...

    def first_difference(self, case: Case) -> str | None:
        """Play a case; return None when every answer is the recorded one."""
        ...


def case_files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files that may hold cases, in order of name."""
    for path in paths:
        if path.is_dir():
            yield from case_files(sorted(path.iterdir()))
        elif path.name.endswith((".json", ".json.gz")) and path.name.removesuffix(".gz") not in _NO_CASES:
            yield path


def read_document(path: Path) -> Any:
    data = path.read_bytes()
    return json.loads(gzip.decompress(data) if path.suffix == ".gz" else data)


def selected_cases(suite: Suite, paths: Iterable[Path], selection: Selection) -> Iterator[Case]:
    for path in case_files(paths):
        for case in suite.cases(read_document(path)):
            if _is_selected(suite, case, selection):
                yield case


def _is_selected(suite: Suite, case: Case, selection: Selection) -> bool:
    group = suite.group(case)
    if selection.groups and group not in selection.groups:
        return False
    if group in selection.skipped_groups:
        return False
    if selection.single_step and suite.has_steps(case):
        return False
    if selection.metrics and not suite.metric_types(case) <= set(selection.metrics):
        return False
    return not selection.ids or suite.case_id(case) in selection.ids


def difference(where: str, expected: Any, found: Any) -> str | None:
    """Return the first place where two JSON values differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            inner = difference(f"{where}.{key}", expected.get(key), found.get(key))
            if inner:
                return inner
        return None
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for index, (left, right) in enumerate(zip(expected, found, strict=True)):
            inner = difference(f"{where}[{index}]", left, right)
            if inner:
                return inner
        return None
    if expected == found and isinstance(expected, bool) == isinstance(found, bool):
        return None
    return f"{where}: expected {json.dumps(expected)}, found {json.dumps(found)}"
