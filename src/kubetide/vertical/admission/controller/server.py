"""Reviews over HTTP: a POST comes in, an AdmissionReview goes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from aiohttp import web

from kubetide.ports.clock import Clock
from kubetide.units.time import ZERO, Duration
from kubetide.vertical.admission.decide import JSON_TYPE, MAX_BODY, TOO_LARGE, Answer, Reply, allowed, reply
from kubetide.vertical.admission.state import State

_MOST_PROBLEMS = 1000


class ReviewHandler:
    """Answers reviews from ``state``; rejects only invalid VPA objects."""

    def __init__(
        self, state: State, clock: Clock, *, on_problem: Callable[[Answer], None] | None = None
    ) -> None:
        """Prepare the handler.

        Args:
            on_problem: Called once with each different problem, for the log.
        """
        self._state, self._clock = state, clock
        self._on_problem = on_problem
        self._said: dict[str, None] = {}
        self.answers: Counter[tuple[str, str]] = Counter()
        """Answered reviews by the labels of upstream's metric: status, resource."""
        self.pods_applied = 0
        self.bugs = 0
        """Reviews that were allowed because answering them failed in a way that nobody foresaw."""
        self.last_problem = ""
        self.elapsed = Duration(0)
        """Time spent on answering, all reviews together."""
        self.observer: Callable[[Answer, Duration, Duration], None] | None = None
        """Called with each answer, the time that reading its request took, and that of answering it."""

    def application(self) -> web.Application:
        """Return the application to serve."""
        app = web.Application(client_max_size=MAX_BODY)
        app.router.add_route("*", "/{path:.*}", self.handle)
        return app

    async def handle(self, request: web.Request) -> web.Response:
        """Answer one request."""
        begun = self._clock.monotonic()
        content_type = request.headers.get("Content-Type", "")
        try:
            body = await request.read() if content_type == JSON_TYPE else b""
        except web.HTTPRequestEntityTooLarge:
            return web.Response(status=413, text=TOO_LARGE)
        read = Duration(self._clock.monotonic() - begun)
        done = self.answer(content_type, body, read)
        headers = {"Content-Type": JSON_TYPE} if done.body else None
        return web.Response(status=done.status, body=done.body, headers=headers)

    def answer(self, content_type: str, body: bytes, read: Duration = ZERO) -> Reply:
        """Return the reply to a POST; an internal error is counted, and the object admitted.

        Args:
            read: How long reading the body took.
        """
        began = self._clock.monotonic()
        try:
            done = reply(self._state, content_type, body)
        except Exception as error:  # noqa: BLE001  # the rim: a bug of ours must never keep a pod out
            self.bugs += 1
            done = allowed(body, f"{type(error).__name__}: {error}")
        took = Duration(self._clock.monotonic() - began)
        self.elapsed = Duration(self.elapsed + took)
        if done.answer is not None:
            self._count(done.answer)
            if self.observer is not None:
                self.observer(done.answer, read, took)
        return done

    def _count(self, answer: Answer) -> None:
        self.answers[answer.status, answer.resource] += 1
        self.pods_applied += answer.resource == "Pod" and answer.status == "applied"
        if not answer.problem:
            return
        self.last_problem = answer.problem
        if answer.problem in self._said:
            return
        if len(self._said) >= _MOST_PROBLEMS:
            del self._said[next(iter(self._said))]
        self._said[answer.problem] = None
        if self._on_problem is not None:
            self._on_problem(answer)
