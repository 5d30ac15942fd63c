"""Figures of runs that have ended, persisted as JSON lines: a long table can be made over several sittings."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.plan_series import Series


def key_of(series: Series, settings: Mapping[str, Any]) -> str:
    """Return the key of a run: it changes with the load and with everything that is set."""
    load = hashlib.sha256(series.values.tobytes()).hexdigest()
    reported = [series.name, load, series.step, series.capacity, settings]
    return hashlib.sha256(json.dumps(reported, sort_keys=True).encode()).hexdigest()[:16]


class Results:
    """Figures by key of their run. Without a file they are in memory only.

    The file knows nothing of the program's own version: after a change of it begin a new one.
    """

    def __init__(self, path: Path | None = None) -> None:
        """Read what is there. Raises ValueError for a line that is no run, OSError."""
        self.path = path
        self._found: dict[str, dict[str, Any]] = {}
        if path is None or not path.exists():
            return
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            try:
                one = json.loads(line)
                self._found[one["key"]] = one["figures"]
            except (ValueError, KeyError, TypeError) as error:
                raise ValueError(f"{path}, line {number}: no figures of a run; delete the line") from error

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the figures of a run that has ended before; None where it has not."""
        return self._found.get(key)

    def add(self, key: str, series: str, policy: str, figures: dict[str, Any]) -> None:
        """Store the figures of a run, at once on disk as well."""
        self._found[key] = figures
        if self.path is not None:
            line = json.dumps({"key": key, "series": series, "policy": policy, "figures": figures})
            with self.path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
