"""A guard around a metric source: whatever it does, an HPA gets samples or an error text.

A source that does not answer in time is given up on for that question. After three such questions in
a row no more are asked for a while, so that one dead source does not hold up a tick for as long as there are
HPAs that need it. An answer, even a refusal, ends the row: then the source is alive.
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from typing import TypeVar

from kubetide.ports.clock import Clock
from kubetide.ports.errors import MetricsError
from kubetide.units.time import Duration, Instant, format_duration, seconds, to_seconds

A = TypeVar("A")

PATIENCE = seconds(10)
PAUSE = seconds(60)
_IN_A_ROW = 3


class GuardedSource:
    """Queries one source, with a time limit and a circuit breaker.

    Attributes:
        failures: Questions that ended in an exception which is no ``MetricsError``: bugs of the source.
        last_failure: The traceback of the last of them.
        last_error: What the source last said where it had no answer; empty where it always had one.
        failing_since: Since when no question has had an answer; None while questions have one.
        problem: Why the first of these questions had none.
    """

    def __init__(self, name: str, clock: Clock, patience: Duration = PATIENCE) -> None:
        self.name = name
        self._patience = patience
        self.failures = 0
        self.last_failure = ""
        self.last_error = ""
        self.failing_since: Instant | None = None
        self.problem = ""
        self._clock = clock
        self._timeouts = 0
        self._closed_until = Duration(0)

    @property
    def is_left_alone(self) -> bool:
        """Whether the circuit breaker is open: the source failed several times in a row."""
        return self._closed_until > self._clock.monotonic()

    async def ask(self, question: Callable[[], Awaitable[A]]) -> A:
        """Return the answer. Raises: MetricsError, and nothing else."""
        left = self._closed_until - self._clock.monotonic()
        if left > 0:
            raise MetricsError(
                f"the source of {self.name} did not answer {_IN_A_ROW} questions in a row; "
                f"it is asked again within {format_duration(PAUSE)}"
            )
        try:
            async with asyncio.timeout(to_seconds(self._patience)):
                answer = await question()
        except MetricsError as error:
            self._timeouts = 0
            self.last_error = str(error)
            self._note_problem(str(error))
            raise
        except TimeoutError:
            self._note_timeout()
            text = f"the source of {self.name} did not answer within {format_duration(self._patience)}"
            self._note_problem(text)
            raise MetricsError(text) from None
        except Exception as error:
            # Of a source anything may come, also one that a user has written; it harms its own HPAs only.
            self.failures += 1
            self.last_failure = traceback.format_exc()
            text = f"the source of {self.name} failed: {type(error).__name__}: {error}"
            self._note_problem(text)
            raise MetricsError(text) from error
        self._timeouts = 0
        self.failing_since = None
        return answer

    def _note_problem(self, text: str) -> None:
        if self.failing_since is None:
            self.failing_since, self.problem = self._clock.now(), text

    def _note_timeout(self) -> None:
        self._timeouts += 1
        if self._timeouts >= _IN_A_ROW:
            # One question is let through after the pause; a timeout of it closes the source again.
            self._timeouts = _IN_A_ROW - 1
            self._closed_until = Duration(self._clock.monotonic() + PAUSE)
