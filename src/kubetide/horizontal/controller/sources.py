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


class _Breaker:
    """Counts questions in a row that were not answered in time; after some of them none is asked for a while."""

    __slots__ = ("closed_until", "timeouts")

    def __init__(self) -> None:
        self.closed_until, self.timeouts = Duration(0), 0

    def note_timeout(self, now: Duration) -> None:
        self.timeouts += 1
        if self.timeouts >= _IN_A_ROW:
            # One question is let through after the pause; a timeout of it closes the source again.
            self.timeouts = _IN_A_ROW - 1
            self.closed_until = Duration(now + PAUSE)


class GuardedSource:
    """Queries one source, with a time limit, a circuit breaker, and one for each metric of it.

    While the source answers other questions, a metric that it does not answer is left alone by itself.

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
        self._whole = _Breaker()
        self._of_metric: dict[str, _Breaker] = {}
        """Of metrics that had no answer in time the last time."""
        self._answered: Duration | None = None

    @property
    def is_left_alone(self) -> bool:
        """Whether a circuit breaker is open: the source, or a metric of it, had no answer several times in a row."""
        now = self._clock.monotonic()
        return any(one.closed_until > now for one in (self._whole, *self._of_metric.values()))

    def is_slow(self, metric: str) -> bool:
        """Return whether the metric had no answer in time the last time: others are better asked for first."""
        return metric in self._of_metric

    async def ask(self, question: Callable[[], Awaitable[A]], metric: str = "") -> A:
        """Return the answer. Raises: MetricsError, and nothing else.

        Args:
            metric: Which metric is asked for, where the source has several that may fail each by itself.
        """
        now, own = self._clock.monotonic(), self._of_metric.get(metric)
        if self._whole.closed_until > now or (own is not None and own.closed_until > now):
            of = "" if self._whole.closed_until > now else f" for {metric}"
            raise MetricsError(
                f"the source of {self.name} did not answer {_IN_A_ROW} questions{of} in a row; "
                f"it is asked again within {format_duration(PAUSE)}"
            )
        try:
            async with asyncio.timeout(to_seconds(self._patience)):
                answer = await question()
        except MetricsError as error:
            self._note_answer(metric)
            self.last_error = str(error)
            self._note_problem(str(error))
            raise
        except TimeoutError:
            self._note_timeout(metric)
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
        self._note_answer(metric)
        self.failing_since = None
        return answer

    def _note_problem(self, text: str) -> None:
        if self.failing_since is None:
            self.failing_since, self.problem = self._clock.now(), text

    def _note_answer(self, metric: str) -> None:
        self._answered, self._whole.timeouts = self._clock.monotonic(), 0
        self._of_metric.pop(metric, None)

    def _note_timeout(self, metric: str) -> None:
        now = self._clock.monotonic()
        if metric:
            self._of_metric.setdefault(metric, _Breaker()).note_timeout(now)
        if not metric or self._answered is None or now - self._answered >= 2 * self._patience:
            self._whole.note_timeout(now)
