"""What a person must hear of: loops that change nothing for want of the admission controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kubetide.vertical.updater.decision import Result
from kubetide.vertical.updater.reasons import LOOP_SUBJECT, VOCABULARY

_IN_A_ROW: Final = 2
"""Loops before a word: the admission controller may begin a little later than the updater."""
_WHAT_TO_DO: Final = "no pod is changed until it has one that is renewed; start the admission controller (the loop admission, with --act)"


class LeaseNotice:
    """Tells once, until it is there, that the admission controller's lease is missing or too old."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn = warn
        self._in_vain = 0

    def note(self, result: Result) -> None:
        """Note the end of a loop."""
        if result.skipped not in {"error", "invalid"}:
            self._in_vain = 0
            return
        self._in_vain += 1
        if self._in_vain == _IN_A_ROW:
            # Beside it may stand what late answers of the API server came to.
            of_loop = (one for one in result.reasons if one.subject == LOOP_SUBJECT)
            why = "; ".join(map(VOCABULARY.text, of_loop))
            self._warn(f"{why}; {_WHAT_TO_DO}")
