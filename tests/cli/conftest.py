"""The commands here read the environment, which must not hold what is meant for the tests."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    """``kubetide run`` takes every KUBETIDE_... variable for a setting, KUBETIDE_KUBECTL too."""
    for name in [name for name in os.environ if name.startswith("KUBETIDE_")]:
        monkeypatch.delenv(name)
