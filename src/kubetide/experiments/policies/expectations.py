"""Parses expectations of a run from their text.

For example:

sloMinutes(web) <= 3
cost <= 1.05 x baseline
never(pending > 50 for 5m)
always(replicas(web) >= 3 between 08:30 and 18:00 Europe/Berlin)
no node deleted within 15m of its creation
"""

from __future__ import annotations

import difflib
import operator
import re
from collections.abc import Callable, Collection
from typing import Final
from zoneinfo import ZoneInfo

import msgspec

from kubetide.simulate.scenarios.scenario import parse_time_of_day
from kubetide.units.time import Duration, parse_duration, to_seconds

OPERATORS: Final[dict[str, Callable[[float, float], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}

QUANTITIES: Final[dict[str, str]] = {
    "cost": "",
    "sloMinutes": "service?",
    "unserved": "service?",
    "slack": "service",
    "rescales": "service?",
    "podMinutes": "service?",
    "pendingPodMinutes": "",
    "waitMedian": "",
    "waitP95": "",
    "waitLongest": "",
    "podStarts": "",
    "evictions": "",
    "preemptions": "",
    "taintEvictions": "",
    "nodesBought": "",
    "nodesRemoved": "",
    "nodesShortLived": "",
    "nodesBoughtBack": "",
    "nodeHours": "group?",
    "decisions": "",
}
"""Figures of a whole run, and the subject of each: a service, a group, with ``?`` also the whole."""

SERIES: Final[dict[str, str]] = {
    "pending": "",
    "nodes": "group?",
    "replicas": "service",
    "ready": "service",
    "desired": "service",
    "latency": "service",
    "queue": "service",
    "offered": "service",
    "capacity": "service",
}
"""What changes step by step."""

_DURATIONS: Final = frozenset({"waitMedian", "waitP95", "waitLongest", "latency"})
"""Figures and series in seconds, whose bound may be a duration such as 5m."""

_TOKEN = re.compile(
    r"\s*(?:(?P<op><=|>=|==|!=|<|>)|(?P<number>\d+(?:\.\d+)?%?(?=x?(?:[\s(),<>=!]|$)))|(?P<mark>[(),])|(?P<word>[^\s()<>=!,]+))"
)


class ExpectationError(ValueError):
    """An unreadable expectation; the text shows the place and what is expected there."""


class Total(msgspec.Struct, frozen=True):
    """A figure of the whole run against a bound: ``factor`` x that of the baseline where that is set, else ``bound``."""

    quantity: str
    subject: str
    compare: str
    bound: float
    of_baseline: bool = False


class Window(msgspec.Struct, frozen=True):
    """A part of each day, by the clock of a time zone; it may go over midnight."""

    start: Duration
    end: Duration
    zone: str


class During(msgspec.Struct, frozen=True):
    """A condition of each step: always, or never for ``lasting`` at a stretch."""

    always: bool
    series: str
    subject: str
    compare: str
    bound: float
    lasting: Duration = Duration(0)
    window: Window | None = None


class NodesLive(msgspec.Struct, frozen=True):
    """No node is deleted within a time of its creation."""

    least: Duration


Rule = Total | During | NodesLive


class Expectation(msgspec.Struct, frozen=True):
    """What must hold, and as it was written."""

    text: str
    rule: Rule

    @property
    def needs_baseline(self) -> bool:
        """Whether the run without the policy's changes is needed."""
        return isinstance(self.rule, Total) and self.rule.of_baseline


def check_subject(expectation: Expectation, services: Collection[str], groups: Collection[str]) -> None:
    """Raise ExpectationError if the expectation names an unknown service or node group."""
    rule = expectation.rule
    if isinstance(rule, NodesLive) or not rule.subject:
        return
    takes = (QUANTITIES[rule.quantity] if isinstance(rule, Total) else SERIES[rule.series]).rstrip("?")
    known = services if takes == "service" else groups
    if rule.subject not in known:
        raise ExpectationError(
            f"`{expectation.text}`: the scenario has no {takes} `{rule.subject}`; there are {', '.join(sorted(known))}"
        )


def read_expectation(text: str) -> Expectation:
    """Return a parsed expectation. Raises ExpectationError with the place of the error."""
    return Expectation(text.strip(), _Reader(text).read())


class _Reader:
    """Reads token by token."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._kind = self._word = ""
        self._start = 0
        self._next()

    def read(self) -> Rule:
        rule: Rule
        if self._word in ("always", "never"):
            rule = self._during()
        elif self._word == "no":
            rule = self._nodes_live()
        else:
            rule = self._total()
        if self._word:
            raise self._error("nothing more")
        return rule

    def _next(self) -> str:
        """Go on by one token, and return the one before."""
        before = self._word
        rest = self._text[self._at :]
        if not rest.strip():
            self._kind, self._word, self._start = "", "", len(self._text.rstrip())
            self._at = len(self._text)
            return before
        match = _TOKEN.match(self._text, self._at)
        if match is None or match.lastgroup is None:
            self._start, self._word = self._at, rest.strip()[:1]
            raise self._error("a name, a number or a comparison")
        self._kind, self._word = match.lastgroup, match.group(match.lastgroup)
        self._start, self._at = match.start(match.lastgroup), match.end()
        return before

    def _error(self, expected: str) -> ExpectationError:
        found = f"`{self._word}`" if self._word else "its end"
        return ExpectationError(
            f"`{self._text.strip()}` at character {self._start + 1}: {found} where {expected} is expected"
        )

    def _take(self, token: str) -> None:
        if self._word != token:
            raise self._error(f"`{token}`")
        self._next()

    def _number(self, what: str = "a number") -> float:
        if self._kind != "number":
            raise self._error(what)
        token = self._next()
        return float(token[:-1]) / 100 if token.endswith("%") else float(token)

    def _bound(self, of: str, what: str) -> float:
        """Read a number; of a figure in seconds also a duration."""
        if of in _DURATIONS and self._kind == "word":
            return to_seconds(self._duration())
        return self._number(what)

    def _compare(self) -> str:
        if self._kind != "op":
            raise self._error(f"one of {', '.join(OPERATORS)}")
        return self._next()

    def _named(self, known: dict[str, str]) -> tuple[str, str]:
        """Read ``NAME`` or ``NAME(SUBJECT)``."""
        if self._word not in known:
            near = difflib.get_close_matches(self._word, known, n=1)
            raise self._error(f"`{near[0]}`" if near else f"one of {', '.join(known)}")
        name = self._next()
        takes = known[name]
        if self._word == "(" and takes:
            self._next()
            if self._kind not in ("word", "number"):
                raise self._error(f"the name of a {takes.rstrip('?')}")
            subject = self._next()
            self._take(")")
            return name, subject
        if takes and not takes.endswith("?"):
            raise self._error(f"`({takes})`")
        return name, ""

    def _total(self) -> Total:
        quantity, subject = self._named(QUANTITIES)
        compare = self._compare()
        if self._word == "baseline":
            self._next()
            return Total(quantity, subject, compare, 1.0, of_baseline=True)
        bound = self._bound(quantity, "a number, or `baseline`")
        of_baseline = self._word in ("x", "*")
        if of_baseline:
            self._next()
            self._take("baseline")
        return Total(quantity, subject, compare, bound, of_baseline=of_baseline)

    def _during(self) -> During:
        always = self._next() == "always"
        self._take("(")
        series, subject = self._named(SERIES)
        compare = self._compare()
        bound = self._bound(series, "a number")
        lasting = Duration(0)
        if self._word == "for":
            if always:
                raise self._error("`between` or `)`; `for` goes with never(...)")
            self._next()
            lasting = self._duration()
        window = self._window() if self._word == "between" else None
        self._take(")")
        return During(always, series, subject, compare, bound, lasting, window)

    def _duration(self) -> Duration:
        try:
            found = parse_duration(self._word)
        except ValueError:
            found = Duration(-1)
        if found < 0:
            raise self._error("a duration such as 5m")
        self._next()
        return found

    def _window(self) -> Window:
        self._take("between")
        start = self._time_of_day()
        self._take("and")
        end = self._time_of_day()
        if start == end:
            raise self._error("an end that is not the start")
        zone = "UTC"
        if self._word != ")":
            try:
                ZoneInfo(self._word)
            except (ValueError, OSError, KeyError):
                raise self._error("a time zone such as Europe/Berlin") from None
            zone = self._next()
        return Window(start, end, zone)

    def _time_of_day(self) -> Duration:
        try:
            found = parse_time_of_day(self._word)
        except ValueError:
            raise self._error("a time of day such as 08:30") from None
        self._next()
        return found

    def _nodes_live(self) -> NodesLive:
        for word in ("no", "node", "deleted", "within"):
            self._take(word)
        least = self._duration()
        for word in ("of", "its", "creation"):
            self._take(word)
        return NodesLive(least)
