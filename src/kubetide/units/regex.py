"""Regular expressions of users, by RE2: in time linear in the text, whatever the pattern.

Source: google-re2; messages are those of Go's regexp/syntax, which upstream and cel-go print.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
    "pattern too large - compile failed": "expression too large",
}
"""Go's words for what RE2 in C++ calls otherwise."""


class PatternError(ValueError):
    """Not a regular expression; the message is that of Go's regexp package."""


class Pattern:
    """A compiled pattern."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled

    @property
    def text(self) -> str:
        """The pattern as it was written."""
        written: str = self._compiled.pattern
        return written

    def find(self, text: str) -> tuple[int, int] | None:
        """Return begin and end of the first match, None without one."""
        found = self._compiled.search(text)
        return None if found is None else found.span()

    def find_all(self, text: str, most: int = -1) -> list[tuple[int, int]]:
        """Return begin and end of the matches that do not overlap, ``most`` of them; all for a negative number.

        An empty match that begins where another one ended does not count, as in Go.
        """
        found: list[tuple[int, int]] = []
        for match in self._compiled.finditer(text):
            if 0 <= most <= len(found):
                break
            begin, end = match.span()
            if begin != end or not found or found[-1][1] != begin:
                found.append((begin, end))
        return found


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> Pattern:
    """Compile a pattern. Raises PatternError."""
    import re2  # noqa: PLC0415  loaded when the first pattern is met

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(pattern, options))
    except re2.error as error:
        said = error.args[0]
        problem, _, text = (
            said.decode(errors="replace") if isinstance(said, bytes) else str(said)
        ).partition(": ")
        shown = f": `{text}`" if text else ""
        raise PatternError(f"error parsing regexp: {_WORDS.get(problem, problem)}{shown}") from error
