"""Coming events of a loop, for ``kubetide plan``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from kubetide.units.time import Duration, Instant


class Coming(NamedTuple):
    """A coming event.

    Attributes:
        at: When, as far as it is known now.
        subject: What it is about.
        text: What happens then, as a sentence without its end.
        why: What it rests on.
    """

    at: Instant
    subject: str
    text: str
    why: str = ""


Outlook = Callable[[Any, Instant, Duration], list[Coming]]
"""Returns what is to come of a core, from a time on for so long, in any order."""
