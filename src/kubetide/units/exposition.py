"""Series for Prometheus: counters, gauges, histograms and summaries with labels, and their text form.

Names are printed as given and numbers as Go's client prints them, so that dashboards made for
upstream read ours. Labels are named in alphabetical order, which is the order in which Go's client
prints them. Source: Prometheus text exposition format 0.0.4, client_golang v1.23.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from math import ceil, inf, isinf, isnan, nan
from typing import TypeVar

from kubetide.units.time import Duration

Labels = tuple[str, ...]


class Numbers:
    """Counters or gauges of one name, by the values of their labels."""

    def __init__(self, kind: str, name: str, text: str, labels: Labels) -> None:
        self.kind = kind
        self.name = name
        self.text = text
        self.labels = _in_order(name, labels)
        # As Go's client: one without labels is there from the start.
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, amount: float = 1.0, *values: str) -> None:
        """Add to one; ``values`` are those of the labels, in their order."""
        _check(self.name, self.labels, values)
        self._values[values] = self._values.get(values, 0.0) + amount

    def set(self, value: float, *values: str) -> None:
        """Set one; ``values`` are those of the labels, in their order."""
        _check(self.name, self.labels, values)
        self._values[values] = value

    def clear(self) -> None:
        """Forget all that have labels."""
        if self.labels:
            self._values.clear()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format, in the order of the labels' values."""
        for values in sorted(self._values):
            yield f"{self.name}{_braces(self.labels, values)} {number_text(self._values[values])}"


@dataclass(slots=True)
class _Observed:
    counts: list[int]
    total: float = 0.0


class Histogram:
    """Histograms of one name, by the values of their labels."""

    kind = "histogram"

    def __init__(self, name: str, text: str, labels: Labels, buckets: Sequence[float]) -> None:
        self.name = name
        self.text = text
        self.labels = _in_order(name, labels)
        self._bounds = (*buckets, inf)
        self._seen: dict[Labels, _Observed] = {}
        if not labels:
            self._of(())

    def observe(self, value: float, *values: str, times: int = 1) -> None:
        """Count a value, ``times`` over."""
        _check(self.name, self.labels, values)
        seen = self._of(values)
        seen.counts[bisect_left(self._bounds, value)] += times
        seen.total += value * times

    @property
    def bounds(self) -> tuple[float, ...]:
        """The upper bounds of the buckets; the last one is infinite."""
        return self._bounds

    def add(self, counts: Sequence[int], total: float, *values: str) -> None:
        """Count many values: so many in each bucket, and their sum."""
        _check(self.name, self.labels, values)
        seen = self._of(values)
        seen.counts = [known + more for known, more in zip(seen.counts, counts, strict=True)]
        seen.total += total

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format, in the order of the labels' values."""
        for values in sorted(self._seen):
            seen, below = self._seen[values], 0
            for bound, count in zip(self._bounds, seen.counts, strict=True):
                below += count
                inside = _braces((*self.labels, "le"), (*values, number_text(bound)))
                yield f"{self.name}_bucket{inside} {number_text(below)}"
            outside = _braces(self.labels, values)
            yield f"{self.name}_sum{outside} {number_text(seen.total)}"
            yield f"{self.name}_count{outside} {number_text(below)}"

    def _of(self, values: Labels) -> _Observed:
        return self._seen.setdefault(values, _Observed([0] * len(self._bounds)))


QUANTILES = (0.5, 0.9, 0.99)
"""Those of a summary that names none. Source: component-base v0.36."""


@dataclass(slots=True)
class _Recent:
    values: deque[tuple[Duration, float]] = field(default_factory=deque)
    """The values within the window, with when they were seen."""
    total: float = 0.0
    count: int = 0


class Summary:
    """Quantiles of the values of a while, by the values of their labels; sum and count are of all time.

    A quantile is the value at its rank, rounded up, and NaN where the window is empty. Go's client gives the
    same while a window has no more than 500 values, and drops old ones by fifths of the window.
    """

    kind = "summary"

    def __init__(
        self, name: str, text: str, labels: Labels, window: Duration, elapsed: Callable[[], Duration]
    ) -> None:
        self.name = name
        self.text = text
        self.labels = _in_order(name, labels)
        self._window = window
        self._elapsed = elapsed
        self._seen: dict[Labels, _Recent] = {}

    def observe(self, value: float, *values: str) -> None:
        """Count a value; ``values`` are those of the labels, in their order."""
        _check(self.name, self.labels, values)
        seen = self._seen.setdefault(values, _Recent())
        seen.values.append((self._elapsed(), value))
        seen.total += value
        seen.count += 1
        self._forget_old(seen)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format, in the order of the labels' values."""
        for values in sorted(self._seen):
            seen = self._seen[values]
            self._forget_old(seen)
            ranked = sorted(value for _, value in seen.values)
            for quantile in QUANTILES:
                inside = _braces((*self.labels, "quantile"), (*values, number_text(quantile)))
                at = max(0, ceil(len(ranked) * quantile) - 1)
                yield f"{self.name}{inside} {number_text(ranked[at] if ranked else nan)}"
            outside = _braces(self.labels, values)
            yield f"{self.name}_sum{outside} {number_text(seen.total)}"
            yield f"{self.name}_count{outside} {number_text(seen.count)}"

    def _forget_old(self, seen: _Recent) -> None:
        now = self._elapsed()
        while seen.values and now - seen.values[0][0] >= self._window:
            seen.values.popleft()


F = TypeVar("F", Numbers, Histogram, Summary)


class Registry:
    """All series of a process, printed in the order of their names."""

    def __init__(self) -> None:
        self._families: dict[str, Numbers | Histogram | Summary] = {}
        self._collectors: list[Callable[[], None]] = []

    @property
    def families(self) -> tuple[Numbers | Histogram | Summary, ...]:
        """All that there can be, in the order of names, seen yet or not."""
        return tuple(self._families[name] for name in sorted(self._families))

    def counter(self, name: str, text: str, labels: Labels = ()) -> Numbers:
        """Add a counter. Raises ValueError for a name that is taken, and for labels out of order."""
        return self._add(Numbers("counter", name, text, labels))

    def gauge(self, name: str, text: str, labels: Labels = ()) -> Numbers:
        """Add a gauge. Raises ValueError for a name that is taken."""
        return self._add(Numbers("gauge", name, text, labels))

    def histogram(self, name: str, text: str, labels: Labels = (), *, buckets: Sequence[float]) -> Histogram:
        """Add a histogram with these upper bounds, ascending. Raises ValueError for a name that is taken."""
        return self._add(Histogram(name, text, labels, buckets))

    def summary(
        self,
        name: str,
        text: str,
        labels: Labels,
        *,
        window: Duration,
        elapsed: Callable[[], Duration],
    ) -> Summary:
        """Add a summary of the values within ``window``, by the elapsed time that ``elapsed`` gives.

        Raises ValueError for a name that is taken, and for labels out of order.
        """
        return self._add(Summary(name, text, labels, window, elapsed))

    def before_scrape(self, collect: Callable[[], None]) -> None:
        """Have ``collect`` set what is worked out only when somebody asks."""
        self._collectors.append(collect)

    def text(self) -> bytes:
        """Return everything in the text format; a name with no series yet is left out, as Go's client does."""
        for collect in self._collectors:
            collect()
        lines: list[str] = []
        for family in self.families:
            if samples := list(family.lines()):
                help_text = family.text.replace("\\", "\\\\").replace("\n", "\\n")
                lines += (
                    f"# HELP {family.name} {help_text}",
                    f"# TYPE {family.name} {family.kind}",
                    *samples,
                )
        return "".join(f"{line}\n" for line in lines).encode()

    def _add(self, family: F) -> F:
        if family.name in self._families:
            raise ValueError(f"the series {family.name} is there already")
        self._families[family.name] = family
        return family


def exponential_buckets(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Return ``count`` bounds, each ``factor`` times the one before, as Go's client works them out."""
    found, bound = [], start
    for _ in range(count):
        found.append(bound)
        bound *= factor
    return tuple(found)


def exponential_range(least: float, most: float, count: int) -> tuple[float, ...]:
    """Return ``count`` bounds from ``least`` to about ``most``, as Go's client works them out."""
    factor = (most / least) ** (1.0 / (count - 1))
    return tuple(least * _power(factor, exponent) for exponent in range(count))


def number_text(value: float) -> str:
    """Print the shortest text that reads back the same, as Go's ``strconv.FormatFloat(v, 'g', -1, 64)``.

    Zero has no sign, as in Go's client.
    """
    if isnan(value):
        return "NaN"
    if isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "0"
    sign, digits, _ = Decimal(repr(float(value))).normalize().as_tuple()
    text = "".join(map(str, digits))
    minus = "-" if sign else ""
    power = Decimal(repr(float(value))).adjusted()
    if not -4 <= power < 6:
        fraction = f".{text[1:]}" if len(text) > 1 else ""
        return f"{minus}{text[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if power < 0:
        return f"{minus}0.{'0' * (-power - 1)}{text}"
    whole = text[: power + 1].ljust(power + 1, "0")
    return f"{minus}{whole}.{text[power + 1 :]}".removesuffix(".")


def _power(base: float, exponent: int) -> float:
    """Multiply in the order of Go's ``math.Pow``: the C library's differs in the last bit."""
    found = 1.0
    while exponent:
        if exponent & 1:
            found *= base
        base *= base
        exponent >>= 1
    return found


def _in_order(name: str, labels: Labels) -> Labels:
    if list(labels) != sorted(labels):
        raise ValueError(f"{name}: name the labels in alphabetical order: {', '.join(sorted(labels))}")
    return labels


def _check(name: str, labels: Labels, values: Labels) -> None:
    if len(labels) != len(values):
        raise ValueError(f"{name}: {values} are not the values of {labels}")


def _braces(labels: Labels, values: Labels) -> str:
    if not labels:
        return ""
    pairs = (f'{label}="{_escaped(value)}"' for label, value in zip(labels, values, strict=True))
    return f"{{{','.join(pairs)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
