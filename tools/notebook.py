"""Makes docs/python.ipynb of docs/python.md: its text and its blocks of Python, with what each block printed.

``python -m tools.notebook`` writes it, ``python -m tools.notebook FILE`` writes another file. `make docs` runs it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
NOTEBOOK = PAGE.with_suffix(".ipynb")

_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def notebook(page: str) -> str:
    """Return a page as a notebook (nbformat 4.5). Runs its blocks one after another, in a folder of their own."""
    cells: list[dict[str, Any]] = []
    known: dict[str, Any] = {"__name__": "__main__"}
    back = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            # Text and code take turns; the first is text.
            for number, part in enumerate(_BLOCK.split(page)):
                if part.strip():
                    cells.append(_code(part, known, len(cells)) if number % 2 else _text(part, len(cells)))
        finally:
            os.chdir(back)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    metadata = {"kernelspec": kernel, "language_info": {"name": "python"}}
    whole = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def _text(part: str, number: int) -> dict[str, Any]:
    paragraphs = [one for one in part.strip().split("\n\n") if f"({NOTEBOOK.name})" not in one]
    return {
        "cell_type": "markdown",
        "id": f"cell-{number}",
        "metadata": {},
        "source": "\n\n".join(paragraphs),
    }


def _code(part: str, known: dict[str, Any], number: int) -> dict[str, Any]:
    printed = StringIO()
    with redirect_stdout(printed):
        exec(compile(part, str(PAGE), "exec"), known)
    text = printed.getvalue()
    return {
        "cell_type": "code",
        "id": f"cell-{number}",
        "metadata": {},
        "execution_count": None,
        "source": part.rstrip("\n"),
        "outputs": [{"output_type": "stream", "name": "stdout", "text": text}] if text else [],
    }


def main() -> None:
    """Write the notebook."""
    path = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else NOTEBOOK
    path.write_text(notebook(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
