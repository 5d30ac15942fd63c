"""The calendar of onsets refreshed from nothing: 5,000 workloads x 14 days at steps of a minute.

Prints CPU seconds and peak memory of the process. `python -m bench.forecast 500 2` takes fewer workloads and days.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import numpy as np

from kubetide.forecast.calendar import Calendar

MINUTES_A_DAY = 24 * 60


def main() -> None:
    workloads, days = (int(text) for text in sys.argv[1:3]) if len(sys.argv) > 2 else (5_000, 14)
    rng = np.random.default_rng(1)
    day = np.abs(rng.normal(10, 2, (MINUTES_A_DAY, workloads))).astype(np.float32)
    day[::120] *= 3
    calendar = Calendar()
    calendar.grow(workloads)
    learns = np.ones(workloads, np.bool_)
    begin = time.process_time()
    for step in range(days * MINUTES_A_DAY):
        load = day[step % MINUTES_A_DAY]
        calendar.advance(step, load, load, learns)
    cpu = time.process_time() - begin
    print(
        json.dumps(
            {
                "name": f"forecasts of {workloads:,} workloads from {days} days at 1 min",
                "cpu_s": round(cpu, 2),
                "target_cpu_s": 60 if (workloads, days) == (5_000, 14) else None,
                "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
                "target_mib": 1024,
                "ms_a_step": round(1000 * cpu / (days * MINUTES_A_DAY), 3),
            }
        ),
        flush=True,
    )


if __name__ == "__main__":
    main()
