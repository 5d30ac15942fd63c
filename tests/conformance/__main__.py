"""Runs the cases of one suite: ``python -m tests.conformance SUITE PATH... [options]``."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import traceback
from pathlib import Path
from typing import cast

import tests.conformance
from tests.conformance.cases import Selection, Suite, selected_cases

_NOT_SUITES = {"__main__", "cases"}


def suite_names() -> list[str]:
    """Return the suites: one module each. One that begins with the name of another is a part of it."""
    found = {module.name for module in pkgutil.iter_modules(tests.conformance.__path__) if not module.ispkg}
    parts = tuple(f"{name}_" for name in (*found, "test"))
    return sorted(name for name in found - _NOT_SUITES if not name.startswith(parts))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("suite", choices=suite_names())
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file or a folder with cases")
    parser.add_argument("--group", action="append", default=[], help="only this group; may be repeated")
    parser.add_argument("--skip-group", action="append", default=[], help="not this group; may be repeated")
    parser.add_argument("--single-step", action="store_true", help="leave out cases with steps")
    parser.add_argument("--metrics", default="", help="only cases all of whose metrics are of these types")
    parser.add_argument("--id", action="append", default=[], help="only this case; may be repeated")
    parser.add_argument("--by-group", action="store_true", help="count each group by itself as well")
    options = parser.parse_args(arguments)
    for path in options.paths:
        if not path.exists():
            parser.error(f"{path} does not exist")
    suite = cast("Suite", importlib.import_module(f"tests.conformance.{options.suite}"))
    selection = Selection(
        groups=tuple(options.group),
        skipped_groups=tuple(options.skip_group),
        single_step=options.single_step,
        metrics=tuple(part for part in options.metrics.split(",") if part),
        ids=tuple(options.id),
    )
    counts: dict[str, list[int]] = {}
    for case in selected_cases(suite, options.paths, selection):
        try:
            found = suite.first_difference(case)
        except Exception:  # noqa: BLE001  # a crash is a failed case, the others are still run
            found = f"raised\n{traceback.format_exc()}"
        of_group = counts.setdefault(suite.group(case), [0, 0])
        of_group[found is not None] += 1
        if found is not None:
            print(f"{suite.case_id(case)}: {found}")
    if options.by_group:
        for name, (good, bad) in sorted(counts.items()):
            print(f"{name}: {good} passed, {bad} failed")
    passed, failed = (sum(one[index] for one in counts.values()) for index in (0, 1))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
