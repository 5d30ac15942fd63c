"""What is said where the SDK of a provider is not installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

from kubetide.clouds.registry import EXTRAS, missing_package

ROOT = Path(__file__).parents[2]


def test_the_packages_are_those_of_the_extras():
    """No index has the package, so an extra cannot be installed by its name; the packages must be right."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {name: tuple(extras[name]) for name in EXTRAS} == EXTRAS


def test_the_message_is_a_command():
    """docs/troubleshooting.md says to run what it says."""
    said = str(missing_package("--cloud-provider=aws", "aws"))
    assert said.startswith("--cloud-provider=aws needs: pip install 'boto3>=")
