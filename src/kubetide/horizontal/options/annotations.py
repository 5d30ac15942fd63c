"""The annotations of an HPA that turn on options beyond upstream.

Without any of them the loop decides as upstream does. One that cannot be read counts as not there, and
is reported in an event ``InvalidAnnotation``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import msgspec

from kubetide.forecast.zones import is_zone
from kubetide.horizontal.options.named import Named, named_options
from kubetide.units.time import Duration, TimeFormatError, parse_duration

PREFIX = "horizontal.kubetide.io/"
SYNC_PERIOD = PREFIX + "sync-period"
TOLERANCE = PREFIX + "tolerance"
FALLBACK = PREFIX + "fallback"
MAX_AGE = PREFIX + "max-age"
PAUSE = PREFIX + "pause"
COUNT_ONLY_OWNED = PREFIX + "count-only-owned"
COUNT_OLD_DURING_ROLLOUT = PREFIX + "count-old-during-rollout"
FLAP_REPORT = PREFIX + "flap-report"
HOLD_UNTIL_READY = PREFIX + "hold-until-ready"
IDLEST_FIRST = PREFIX + "idlest-first"
FORECAST = PREFIX + "forecast"
FORECAST_ZONE = PREFIX + "forecast-zone"
EMPTIEST_NODE_FIRST = PREFIX + "emptiest-node-first"

GIVEN_COST = PREFIX + "given-deletion-cost"
"""On pods: a copy of the deletion cost that this loop gave. A cost that differs from it is somebody else's."""

STATIC, CURRENT, LAST_GOOD = "static", "current", "last-good"
ALL, IN, OUT = "all", "in", "out"
CALENDAR, STRICT, NONE = "calendar", "strict", "none"
FORECASTS = (CALENDAR, STRICT, NONE)


class Fallback(msgspec.Struct, frozen=True):
    """The proposal while metrics fail: ``static`` replicas, ``current`` or ``last-good``."""

    kind: str
    replicas: int = 0


class Options(msgspec.Struct, frozen=True):
    """The options in the annotations of one HPA.

    Attributes:
        sync_period: Least time between two decisions; None is every tick.
        tolerance: In place of the flag's, where the spec has none of its own; None is the flag's.
        fallback: None is upstream's: without metrics the number stays.
        max_age: Values of objects and external metrics that are older count as failed; None is any age.
        pause: ``all``, ``in`` or ``out``; empty is none.
        count_only_owned: Pods of the selector that the target does not own do not count.
        count_old_during_rollout: While a Deployment is rolled out, samples of the new pods do not count.
        flap_report: Changes of the last hour are remembered.
        hold_until_ready: A scale-down waits for the pods of the last scale-up.
        idlest_first: The pods that do least are marked to go first.
        forecast: ``calendar``, ``strict`` or ``none``; empty is what the flag says.
        forecast_zone: The time zone of its days and weeks; empty is UTC.
        emptiest_node_first: The pods on the emptiest nodes are marked to go first.
        named: Options of other packages that are turned on, in order of their names.
        problems: What cannot be read, in order of the annotations' names.
    """

    sync_period: Duration | None = None
    tolerance: float | None = None
    fallback: Fallback | None = None
    max_age: Duration | None = None
    pause: str = ""
    count_only_owned: bool = False
    count_old_during_rollout: bool = False
    flap_report: bool = False
    hold_until_ready: bool = False
    idlest_first: bool = False
    forecast: str = ""
    forecast_zone: str = ""
    emptiest_node_first: bool = False
    named: tuple[Named, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """Whether any option beyond upstream is on."""
        return self is not NO_OPTIONS and self != NO_OPTIONS

    @property
    def forecasts(self) -> bool:
        """Whether load is forecast."""
        return self.forecast in {CALENDAR, STRICT}

    @property
    def asks_for_owners(self) -> bool:
        """Whether the target's ReplicaSets must be known."""
        return self.count_only_owned or self.count_old_during_rollout


NO_OPTIONS = Options()
_NONE: dict[str, str] = {}


def ours(annotations: Mapping[str, str] | None) -> dict[str, str]:
    """Return the annotations that are read here."""
    return {
        name: text for name, text in sorted((annotations or {}).items()) if name.startswith(PREFIX)
    } or _NONE


def read_options(annotations: Mapping[str, str], others: tuple[str, ...] = ()) -> Options:
    """Return the options in annotations with the prefix; ``others`` are the options of other packages in use."""
    if not annotations:
        return NO_OPTIONS
    found: dict[str, object] = {}
    installed = named_options(others)
    named, problems = [], []
    for name, text in sorted(annotations.items()):
        known = _READERS.get(name)
        if known is None:
            short = name.removeprefix(PREFIX)
            if short not in installed:
                there = sorted((*_READERS, *(PREFIX + one for one in installed)))
                problems.append(f"{name}: is not known; known are {', '.join(there)}")
                continue
            try:
                named.append(Named(short, installed[short][1].read(text.strip())))
            except ValueError as error:
                problems.append(f'{name}: "{text}" is not read; {error}')
            # Another package's code may raise anything.
            except Exception as error:  # noqa: BLE001
                problems.append(f'{name}: "{text}" is not read; {error!r}')
            continue
        field, read, expected = known
        try:
            found[field] = read(text.strip())
        except (ValueError, TimeFormatError):
            problems.append(f'{name}: "{text}" is not read; write {expected}')
    return Options(**found, named=tuple(named), problems=tuple(problems))  # type: ignore[arg-type]  # each reader gives its field's type


def _period(text: str) -> Duration:
    period = parse_duration(text)
    if period <= 0:
        raise ValueError(text)
    return period


def _tolerance(text: str) -> float:
    tolerance = float(text)
    if not math.isfinite(tolerance) or tolerance < 0:
        raise ValueError(text)
    return tolerance


def _fallback(text: str) -> Fallback:
    if text in {CURRENT, LAST_GOOD}:
        return Fallback(text)
    kind, _, number = text.partition("=")
    if kind != STATIC or not number.isascii() or not number.isdecimal():
        raise ValueError(text)
    return Fallback(STATIC, min(int(number), (1 << 31) - 1))


def _pause(text: str) -> str:
    if text not in {ALL, IN, OUT}:
        raise ValueError(text)
    return text


def _truth(text: str) -> bool:
    if text not in {"true", "false"}:
        raise ValueError(text)
    return text == "true"


def _forecast(text: str) -> str:
    if text not in FORECASTS:
        raise ValueError(text)
    return text


def _zone(text: str) -> str:
    if not is_zone(text):
        raise ValueError(text)
    return text


_TRUTH = "true or false"
_READERS: dict[str, tuple[str, Callable[[str], object], str]] = {
    SYNC_PERIOD: ("sync_period", _period, "a duration such as 1m"),
    TOLERANCE: ("tolerance", _tolerance, "a number such as 0.05"),
    FALLBACK: ("fallback", _fallback, "static=5, current or last-good"),
    MAX_AGE: ("max_age", _period, "a duration such as 2m"),
    PAUSE: ("pause", _pause, "all, in or out"),
    COUNT_ONLY_OWNED: ("count_only_owned", _truth, _TRUTH),
    COUNT_OLD_DURING_ROLLOUT: ("count_old_during_rollout", _truth, _TRUTH),
    FLAP_REPORT: ("flap_report", _truth, _TRUTH),
    HOLD_UNTIL_READY: ("hold_until_ready", _truth, _TRUTH),
    IDLEST_FIRST: ("idlest_first", _truth, _TRUTH),
    FORECAST: ("forecast", _forecast, "calendar, strict or none"),
    FORECAST_ZONE: ("forecast_zone", _zone, "the name of a time zone such as Europe/Berlin"),
    EMPTIEST_NODE_FIRST: ("emptiest_node_first", _truth, _TRUTH),
}
