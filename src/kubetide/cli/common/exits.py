"""Exit statuses of all commands; docs/usage.md has them as a table."""

from __future__ import annotations

from typing import Final

FAILED: Final = 1
"""Something failed, or what was looked for was found: a finding, a difference, a broken invariant."""

USAGE: Final = 2
"""The command line is wrong: nothing was begun."""

STUCK: Final = 3
"""A strict run in which something could not scale."""

INTERRUPTED: Final = 130
"""Ctrl-C."""
