"""Where the expectations lie: those of the newest kubectl, and what other versions say differently."""

from __future__ import annotations

from pathlib import Path

EXPECTED = Path(__file__).parent / "expected"
NEWEST = 36
"""The minor version whose answers lie in ``expected/`` itself."""


def folder_of(minor: int) -> Path:
    """Return the folder of a kubectl's own answers."""
    return EXPECTED if minor == NEWEST else EXPECTED / f"1.{minor}"


def expectation(name: str, minor: int) -> str:
    """Return what a kubectl is to say. Raises FileNotFoundError where nothing was recorded."""
    own = folder_of(minor) / f"{name}.txt"
    path = own if own.exists() else EXPECTED / f"{name}.txt"
    return path.read_text(encoding="utf-8")


def is_recorded(minor: int) -> bool:
    """Whether answers of that version's kubectl were recorded."""
    return folder_of(minor).exists()
