"""Takes decisions from the loops without blocking them, and sends them one after another."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Collection, Iterable

import aiohttp

from kubetide.explain.records import Record, Recorder
from kubetide.loop import explaining
from kubetide.ports.clock import Clock
from kubetide.runtime.notify.messages import CONTENT_TYPES, Decision, Format, decisions_of, encoded
from kubetide.serving import make_connector
from kubetide.units.exposition import Registry
from kubetide.units.steps import Steps
from kubetide.units.time import Duration, Instant, between, minutes, seconds

_AT_ONCE = 20
_EVERY = seconds(3)
"""Twenty at once, then one every three seconds: what Slack takes, and what a person reads."""

_AGAIN = minutes(10)
"""The same decision about the same object is not sent again for so long: advice comes anew in each tick."""

_MOST_WAITING = 100
_TIMEOUT_S = 10
_PAUSES = (seconds(1), seconds(5), seconds(30))
"""Before each further try."""


class Notifier:
    """Sends decisions to a webhook.

    Args:
        url: Of the webhook; never shown, as it may hold a secret.
        form: How a decision is written.
        reasons: Codes of the decisions to send; empty for all that did something.
        source: The API server of the cluster.
        registry: Takes the count of what came of them.
        warn: Takes a sentence that a person must see.
    """

    def __init__(
        self,
        url: str,
        form: Format,
        reasons: Collection[str],
        *,
        source: str,
        clock: Clock,
        registry: Registry,
        warn: Callable[[str], None],
    ) -> None:
        self._url, self._form, self._reasons, self._source = url, form, frozenset(reasons), source
        self._clock = clock
        self._warn = warn
        self._waiting: asyncio.Queue[bytes] = asyncio.Queue(_MOST_WAITING)
        self._said: dict[tuple[str, str, str], Instant] = {}
        self._left_out = 0
        self._budget, self._filled = _AT_ONCE, clock.now()
        self._failing = False
        self._count = registry.counter(
            "kubetide_notifications_total",
            "Decisions for the webhook of notify-url, by what came of them: sent, failed, left_out.",
            ("outcome",),
        )

    def recording(self, inner: Recorder) -> Recorder:
        """Return a recorder that passes all records on, and takes decisions from them."""
        return _Taking(inner, self)

    def hear(self, record: Record) -> None:
        """Queue the record's decisions; never raises, and never waits."""
        try:
            self._take(record)
        except Exception:  # noqa: BLE001  the rim: a loop must not fail because of a notification
            self._warn_once(f"a decision could not be sent: {traceback.format_exc().strip()}")

    def _take(self, record: Record) -> None:
        """Put the record's decisions in the queue, as far as the budget and the queue allow."""
        vocabulary = explaining(record.loop).vocabulary
        for decision in decisions_of(record, vocabulary, self._reasons):
            if not self._was_said(decision):
                self._put(decision)

    async def run(self) -> None:
        """Send what is in the queue until cancelled."""
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
        async with aiohttp.ClientSession(connector=make_connector(), timeout=timeout) as session:
            while True:
                body = await self._waiting.get()
                self._count.add(1, "sent" if await self._send(session, body) else "failed")

    def _was_said(self, decision: Decision) -> bool:
        self._said = {key: at for key, at in self._said.items() if between(at, decision.at) < _AGAIN}
        key = (decision.loop, decision.reason, decision.text)
        if key in self._said:
            return True
        self._said[key] = decision.at
        return False

    def _put(self, decision: Decision) -> None:
        now = self._clock.now()
        gained = max(0, (now - self._filled) // _EVERY)
        self._budget = min(_AT_ONCE, self._budget + gained)
        self._filled = now if self._budget == _AT_ONCE else Instant(self._filled + gained * _EVERY)
        if self._budget < 1 or self._waiting.full():
            self._left_out += 1
            self._count.add(1, "left_out")
            return
        self._budget -= 1
        body = encoded(decision, self._form, source=self._source, left_out=self._left_out)
        self._waiting.put_nowait(body)
        self._left_out = 0

    async def _send(self, session: aiohttp.ClientSession, body: bytes) -> bool:
        problem = ""
        for pause in (Duration(0), *_PAUSES):
            await self._clock.sleep(pause)
            problem, is_final = await self._try(session, body)
            if not problem:
                self._failing = False
                return True
            if is_final:
                break
        self._warn_once(f"decisions cannot be sent to the webhook of notify-url: {problem}")
        return False

    def _warn_once(self, text: str) -> None:
        """Warn, unless nothing has been sent since the last warning."""
        if not self._failing:
            self._failing = True
            self._warn(text)

    async def _try(self, session: aiohttp.ClientSession, body: bytes) -> tuple[str, bool]:
        """Send once; return what went wrong, and whether there is no use in trying again."""
        headers = {"Content-Type": CONTENT_TYPES[self._form]}
        try:
            async with session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer:
                status = answer.status
        except TimeoutError:
            return f"no answer within {_TIMEOUT_S} s", False
        except aiohttp.InvalidURL:
            return "its address is none", True
        except (aiohttp.ClientError, OSError) as error:
            # Not the text of the error: it may name the address.
            return type(error).__name__, False
        if status < 300:
            return "", False
        return f"it answers {status}", status < 500 and status != 429


class _Taking:
    def __init__(self, inner: Recorder, notifier: Notifier) -> None:
        self._inner = inner
        self._notifier = notifier

    def wants_full(self, loop: str) -> bool:
        return self._inner.wants_full(loop)

    def write(self, record: Record) -> None:
        self._inner.write(record)
        self._notifier.hear(record)

    def write_in_pieces(self, record: Record, state: Iterable[bytes]) -> Steps[None]:
        yield from self._inner.write_in_pieces(record, state)
        self._notifier.hear(record)
