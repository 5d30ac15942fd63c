"""Property tests try the same examples in every run; KUBETIDE_EXPLORE=1 tries new ones."""

from __future__ import annotations

import os
import shutil

import pytest
from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("KUBETIDE_EXPLORE") else "repeatable")


def pytest_sessionstart():
    """With KUBETIDE_REQUIRE_KUBECTL=1, a run in which the kubectl tests would be skipped does not begin."""
    if not os.environ.get("KUBETIDE_REQUIRE_KUBECTL"):
        return
    named = [path for path in os.environ.get("KUBETIDE_KUBECTL", "").split(":") if path]
    for path in named or ["kubectl"]:
        if shutil.which(path) is None:
            raise pytest.UsageError(f"KUBETIDE_REQUIRE_KUBECTL is set, and {path} is not a program")
