"""`kubetide explain` as a process, on a day's records that were filled up to half a gigabyte: CPU seconds and modules."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from kubetide.explain.records import Record
from kubetide.runtime.records import RecordWriter, read_records
from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenario import load_scenario
from kubetide.simulate.shipped import scenario_path

_LOOPS = ("horizontal", "nodes")
_SIZE = 500_000_000
_COUNT = "import sys; sys.argv[1:] = {words!r}\nfrom kubetide.cli.main import main\nmain()\nprint(len(sys.modules), file=sys.stderr)"


def make(day: Path, large: Path) -> None:
    """Play a day, and write its records anew with blanks in each state."""
    path = scenario_path(Path("web-shop"))
    run_simulation(load_scenario(path), base=path.parent, out=day, seed=1, warn=print)
    for loop in _LOOPS:
        records = list(read_records(day, loop))
        writer = RecordWriter(large, warn=print)
        if loop == _LOOPS[0]:
            writer.start()
        blanks = b" " * (_SIZE // len(_LOOPS) // len(records))
        for record in records:
            writer.write(_filled(record, blanks))
        writer.close()


def _filled(record: Record, blanks: bytes) -> Record:
    return msgspec.structs.replace(record, state=msgspec.Raw(b"{" + blanks + bytes(record.state)[1:]))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        day, large = Path(folder, "day"), Path(folder, "large")
        make(day, large)
        size = sum(path.stat().st_size for path in (large / "records").glob("*.jsonl"))
        for words in (("hpa", "storefront"), ("nodegroup", "burst"), ("nodegroup", "burst", "--at", "12:31")):
            command = ["explain", *words, "--out", str(large)]
            took = []
            for _ in range(3):
                before = resource.getrusage(resource.RUSAGE_CHILDREN)
                run = subprocess.run(
                    [sys.executable, "-c", _COUNT.format(words=command)],
                    capture_output=True,
                    text=True,
                    check=True,
                )
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                took.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
            line = {
                "bench": "explain",
                "asked": " ".join(words),
                "records_mb": size // 1_000_000,
                "cpu_s": round(min(took), 3),
                "modules": int(run.stderr.split()[-1]),
            }
            print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
