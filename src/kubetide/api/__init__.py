"""For notebooks and programs: one HPA, one pod and one machine, a whole run, its records.

Use it as ``import kubetide as kt``; each name is loaded when it is first used.
"""

from __future__ import annotations

from kubetide.api.hpa import UsageError, decide_hpa
from kubetide.api.places import Fit, fits
from kubetide.api.runs import Run, decisions, read_run, run_scenario, why

__all__ = ["Fit", "Run", "UsageError", "decide_hpa", "decisions", "fits", "read_run", "run_scenario", "why"]
