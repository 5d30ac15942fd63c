"""The report of a run: the dashboard as one file, with the answers at the run's end.

They are those of the dashboard's server over the same folder, so both show the same numbers. What is asked about another
time is answered in the page from its figures and decisions, which are those of the whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from kubetide.ports.errors import KubetideError
from kubetide.runtime.recording.records import RecordError
from kubetide.web.front import Json, as_file
from kubetide.web.history import History

MOST_DECISIONS: Final = 20_000
"""With their reasons; of more the oldest are left out, and the page says so."""

MOST_VALUES: Final = 300_000
"""Of all lines together: a report of hundreds of workloads stays a file that opens."""

MOST_EXPLAINED: Final = 200
"""Objects that say why they are as they are at the end, those of kinds with few of them first."""

_AHEAD: Final = "168h"
"""The longest that the page offers."""


def write_report(path: Path, folder: Path) -> None:
    """Write the report of the run in a folder to one HTML file. Raises OSError, RecordError."""
    data = report_data(folder)
    path.write_text(as_file(data["name"], data), encoding="utf-8")


def report_data(folder: Path) -> Json:
    """Return everything the page shows, by the queries of the API, as plain JSON values."""
    history = History(folder)
    outcome = history.summary()
    data: Json = {
        "name": outcome.cells.name if outcome.cells else folder.name,
        "summary": outcome,
        "span": None,
    }
    try:
        span = history.span()
    except RecordError:
        return data  # the run ended before the first decision
    objects = _answer(lambda: history.objects(""))
    decisions = history.decisions(words="", loop="", subject="", until="", limit=MOST_DECISIONS)
    return {
        **data,
        "span": msgspec.structs.replace(span, running=False),
        "status": _answer(lambda: history.status("")),
        "objects": objects,
        "explain": {} if "error" in objects else _explained(history, objects),
        "decisions": decisions,
        "leftOut": decisions.found - len(decisions.decisions),
        "history": history.whole_past(MOST_VALUES),
        "ahead": _answer(lambda: history.ahead("", _AHEAD)),
    }


def _explained(history: History, objects: dict[str, list[str]]) -> dict[str, Any]:
    """Return the explanations by kind and name, ``pod/default/web-1``."""
    kinds = sorted(objects, key=lambda kind: len(objects[kind]))
    chosen = [(kind, name) for kind in kinds for name in objects[kind]][:MOST_EXPLAINED]
    return {f"{kind}/{name}": _answer(partial(history.explain, kind, name, "", "")) for kind, name in chosen}


def _answer(question: Callable[[], Any]) -> Any:
    """Return an answer, or the error in its place, as the server does."""
    try:
        return question()
    except KubetideError as error:
        return {"error": str(error)}
