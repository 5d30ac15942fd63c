"""CPU time of one refresh of 1,000 groups of 15 machines at rest, as JSON lines, for each cloud.

The provider's own time: answers are made before, and no socket is used. The floor is what reading the same answers as plain JSON takes;
boto3 reads the answers of AWS before the provider sees them, so there is none there.

    python -m bench.clouds
"""

from __future__ import annotations

import asyncio
import importlib
import json

GROUPS = 1000


def main() -> None:
    # The fakes of the tests are the servers; they have no types.
    scale = importlib.import_module("tests.clouds.scale")
    for name, make in scale.CLOUDS.items():
        minutes = [asyncio.run(scale.refreshed(make, GROUPS)) for _ in range(3)]
        best = min(minutes, key=lambda minute: minute.cpu_s)
        line = {
            "bench": "clouds",
            "cloud": name,
            "groups": GROUPS,
            "machines": GROUPS * scale.MACHINES,
            "calls": sum(best.calls.values()),
            "cpu_s": round(best.cpu_s, 3),
        }
        if best.floor_s:
            line |= {"floor_s": round(best.floor_s, 4), "ratio": round(best.cpu_s / best.floor_s, 1)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
