"""Commands that are offered in the output of others: they ask the folder that the output is about."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from kubetide.cli.common.completing import FOLDER

_ASK: Final = re.compile(r"(?<=ask: )kubetide explain \S+ [^\s()]+")


def commands_with_folder(out: Path, text: str, at: str | None = None) -> str:
    """Return the text, with the run's folder in each command that asks about the run, and the time where one is given.

    A summary does not name the folder, so that the same run gives the same bytes wherever they are written.
    """
    more = "" if at is None else f" --at {at}"
    more += "" if out == FOLDER else f" --out {shlex.quote(str(out))}"
    return _ASK.sub(lambda found: f"{found[0]}{more}", text)
