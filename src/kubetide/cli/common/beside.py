"""The dashboard beside a run, as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_S = 10
"""For the process to end."""


@contextmanager
def dashboard(folder: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Serve the dashboard of a records folder while it is open; ``tell`` takes its address."""
    command = [sys.executable, "-m", "kubetide", "ui", "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None, "piped"
            tell(process.stdout.readline().strip() or "the dashboard did not start; `kubetide ui` says why")
            yield
        finally:
            process.terminate()
            try:
                process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
