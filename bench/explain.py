"""`kubetide explain` as a process, on the records of the reference scenario's day, half a gigabyte: CPU seconds and modules.

`python -m bench.explain 2h` plays a shorter stretch; `python -m bench.explain FOLDER` asks a folder that is there.
Modules are compiled before, as an installed package has them.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.simulation import scenario
from kubetide.simulate.run import run_simulation

_ASKED = (
    ("hpa", "service-07"),
    ("hpa", "service-07", "--at", "1h"),
    ("nodegroup", "general"),
    ("nodegroup", "general", "--at", "1h"),
)
_COUNT = "import sys; sys.argv[1:] = {words!r}\nfrom kubetide.cli.main import main\nmain()\nprint(len(sys.modules), file=sys.stderr)"


def ask(out: Path) -> None:
    """Print one line a question: the least CPU time of four, the first of which may compile modules."""
    size = sum(path.stat().st_size for path in (out / "records").glob("*.jsonl"))
    for words in _ASKED:
        command = ["explain", *words, "--out", str(out)]
        took = []
        for _ in range(4):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            run = subprocess.run(
                [sys.executable, "-c", _COUNT.format(words=command)],
                capture_output=True,
                text=True,
                check=True,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        line = {
            "name": f"explain {' '.join(words)}",
            "record_mib": size >> 20,
            "cpu_s": round(min(took), 3),
            "target_cpu_s": 0.3,
            "modules": int(run.stderr.split()[-1]),
        }
        print(json.dumps(line), flush=True)


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else "24h"
    if Path(given).is_dir():
        ask(Path(given))
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        run_simulation(scenario(folder, given), base=folder, out=folder / "out", seed=1, warn=print)
        ask(folder / "out")


if __name__ == "__main__":
    main()
