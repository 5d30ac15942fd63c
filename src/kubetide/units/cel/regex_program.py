"""Programs of regular expressions: threads that advance by one character at a time, the preferred ones first.

Source: R. Cox, "Regular Expression Matching: the Virtual Machine Approach" (2009).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

Accepts = Callable[[str], bool]
Holds = Callable[[str, int], bool]


class Step(NamedTuple):
    """One instruction: to read a character, to hold a condition, to go on in several places, or the end."""

    accepts: Accepts | None = None
    holds: Holds | None = None
    targets: tuple[int, ...] = ()


class Pattern:
    """A compiled pattern."""

    def __init__(self, steps: list[Step]) -> None:
        self._steps = steps

    def find(self, text: str, start: int) -> tuple[int, int] | None:
        """Gives begin and end of the leftmost match that RE2 prefers, at or after ``start``; None without one."""
        found: tuple[int, int] | None = None
        threads: dict[int, int] = {}
        for at in range(start, len(text) + 1):
            if found is None:
                self._follow(0, at, text, at, threads)
            elif not threads:
                break
            ahead: dict[int, int] = {}
            for number, begin in threads.items():
                step = self._steps[number]
                if step.accepts is None:
                    found = (begin, at)
                    break
                if at < len(text) and step.accepts(text[at]):
                    self._follow(number + 1, begin, text, at + 1, ahead)
            threads = ahead
        return found

    def _follow(self, number: int, begin: int, text: str, at: int, threads: dict[int, int]) -> None:
        """Adds the threads that reading can go on with, in order of preference."""
        seen: dict[int, None] = {}
        left = [number]
        while left:
            here = left.pop()
            if here in seen or here in threads:
                continue
            seen[here] = None
            step = self._steps[here]
            if step.holds is not None:
                if step.holds(text, at):
                    left.append(here + 1)
            elif step.targets:
                left.extend(reversed(step.targets))
            else:
                threads[here] = begin
