"""The whole Kubernetes autoscaling stack as one Python program."""

from __future__ import annotations

import importlib

__version__ = "0.1.0"

__all__ = [
    "Fit",
    "Run",
    "UsageError",
    "__version__",
    "decide_hpa",
    "decisions",
    "fits",
    "read_run",
    "run_scenario",
    "why",
]


def __getattr__(name: str) -> object:
    """Load what notebooks and programs use when it is first used: commands and loops need none of it."""
    if name.startswith("_") or name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("kubetide.api"), name)
