"""Runs the benchmarks, each in a process of its own, and passes on the JSON lines that they print.

`python -m bench` runs all; `python -m bench store horizontal` runs those two; `python -m bench plan --help` shows the
arguments of the one that has some.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

WITH_ARGUMENTS = ("bill", "capture", "plan", "quality")
"""What follows the name of one of these is for it."""

LONG = WITH_ARGUMENTS
"""Take hours and print decisions, or write gigabytes: they run only where they are named."""


def main() -> int:
    here = Path(__file__).parent
    known = sorted(
        [path.stem for path in here.glob("[a-z]*.py")]
        + [path.parent.name for path in here.glob("*/__main__.py")]
    )
    if sys.argv[1:] and sys.argv[1] in WITH_ARGUMENTS:
        return subprocess.run(
            [sys.executable, "-m", f"bench.{sys.argv[1]}", *sys.argv[2:]], check=False
        ).returncode
    chosen = sys.argv[1:] or [name for name in known if name not in LONG]
    if unknown := [name for name in chosen if name not in known]:
        print(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}", file=sys.stderr)
        return 2
    failed = [
        name
        for name in chosen
        if subprocess.run([sys.executable, "-m", f"bench.{name}"], check=False).returncode
    ]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
