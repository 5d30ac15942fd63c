"""Commands that are offered in the output of others: they ask the folder that the output is about."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from kubetide.cli.common.completing import FOLDER

_ASK: Final = re.compile(r"(?<=ask: )kubetide explain \S+ [^\s()]+")


def commands_with_folder(out: Path, text: str) -> str:
    """Return the text, with the run's folder in each command that asks about the run.

    A summary does not name the folder, so that the same run gives the same bytes wherever they are written.
    """
    if out == FOLDER:
        return text
    return _ASK.sub(lambda found: f"{found[0]} --out {shlex.quote(str(out))}", text)
