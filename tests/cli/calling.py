"""The command line as a process of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "from-zero-wrong-catalogue.yaml"
PATIENCE_S = 300
"""For what comes soon, on a machine that is busy."""

KUBETIDE = [sys.executable, "-c", "from kubetide.cli.main import main; main()"]


def begin(*arguments: object) -> subprocess.Popen[str]:
    """Start a command whose output the test reads while it runs."""
    return subprocess.Popen(
        [*KUBETIDE, *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def call(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*KUBETIDE, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
