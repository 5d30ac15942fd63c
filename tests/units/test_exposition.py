"""Series are printed as Go's Prometheus client prints them, and read back by the official Python one.

``exposition/numbers.json`` has what Go 1.26 makes of numbers and of buckets: bits of a float64 and
``strconv.FormatFloat(v, 'g', -1, 64)``; ``ExponentialBuckets``, ``ExponentialBucketsRange``.
``exposition/client_golang.txt`` is what client_golang v1.23.2 prints of the registry of ``recorded``, and
``exposition/summary.txt`` of the summary of ``summarised``.
"""

import json
import struct
from math import inf, isnan, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from kubetide.units.exposition import Registry, exponential_buckets, exponential_range, number_text
from kubetide.units.time import ZERO, hours, minutes

RECORDED = Path(__file__).parent / "exposition"
GO = json.loads((RECORDED / "numbers.json").read_text())


def bits(text):
    return struct.unpack(">d", bytes.fromhex(text))[0]


@pytest.mark.parametrize(("value", "text"), [(bits(raw), text) for raw, text in GO["numbers"]])
def test_numbers_are_printed_as_by_go(value, text):
    """The shortest digits, an exponent from 1e+06 up and below 1e-04."""
    assert number_text(value) == text


@given(st.floats())
def test_numbers_read_back_the_same(value):
    """Nothing is lost in printing."""
    read = float(number_text(value))
    assert read == value or (isnan(read) and isnan(value))


@pytest.mark.parametrize(
    ("name", "bounds"),
    [
        ("exponential_buckets(0.001, 2, 15)", exponential_buckets(0.001, 2, 15)),
        ("exponential_buckets(1, 1.5, 19)", exponential_buckets(1, 1.5, 19)),
        ("exponential_buckets(1, 2, 6)", exponential_buckets(1, 2, 6)),
        ("exponential_range(0.1, 1800, 150)", exponential_range(0.1, 1800, 150)),
    ],
)
def test_buckets_are_gos(name, bounds):
    """Bounds are equal to the last bit, as ``le`` is a label and dashboards name it."""
    assert [number_text(bound) for bound in bounds] == GO[name]


def recorded():
    """The registry that client_golang was asked to print."""
    registry = Registry()
    made = registry.counter(
        "made_total", 'A back\\slash, a "quote" and\na second line.', labels=("code", "verb")
    )
    made.add(1, "500", "GET")
    made.add(2.5, "200", "PUT")
    made.add(1234567, "200", "GET")
    made.add(0.1, 'a\\b"c\nd', "é")
    made.add(0, "", "")
    gauge = registry.gauge("gauge", "", labels=("name",))
    for name, value in {
        "nan": nan,
        "+inf": inf,
        "-inf": -inf,
        "minus zero": -0.0,
        "time": 1792756800.123456,
        "small": 1e-5,
        "third": 1 / 3,
        "ten": 1e21,
    }.items():
        gauge.set(value, name)
    registry.gauge("never_set", "No series.", labels=("name",))
    registry.counter("plain_total", "Without labels.")
    seconds = registry.histogram(
        "duration_seconds", "Seconds.", ("action", "error"), buckets=exponential_buckets(0.001, 2, 15)
    )
    for value in (0, 0.001, 0.0011, 0.002, 1, 16.384, 16.385, 1000):
        seconds.observe(value, "none", "spec")
    seconds.observe(0.25, "scale_up", "none", times=1_500_000)
    registry.histogram("empty_seconds", "Nothing seen.", buckets=(0.5, 1))
    return registry


def test_the_text_is_client_golangs():
    """Order, escaping, cumulation and numbers are those of Go's client, byte for byte."""
    assert recorded().text().decode() == (RECORDED / "client_golang.txt").read_text()


def summarised(elapsed=lambda: ZERO):
    """The summary that client_golang was asked to print, with component-base's quantiles."""
    registry = Registry()
    took = registry.summary("took_seconds", "Seconds.", ("function",), window=hours(1), elapsed=elapsed)
    took.observe(0.25, "one")
    for number in range(360):
        took.observe(number * 7919 % 360 / 8, "main")
    for value in (3, 1, 2, 2):
        took.observe(value, "four")
    return registry


def test_a_summary_is_client_golangs():
    """Quantiles, sum and count of each series, byte for byte."""
    assert summarised().text().decode() == (RECORDED / "summary.txt").read_text()


def test_a_summary_forgets_what_is_older_than_its_window():
    """Quantiles are of the last hour, and NaN when there is nothing in it; sum and count are of all time."""
    now = [minutes(0)]
    registry = Registry()
    took = registry.summary("took", "", (), window=hours(1), elapsed=lambda: now[0])

    def lines():
        return registry.text().decode().splitlines()[2:]

    took.observe(5)
    now[0] = minutes(30)
    took.observe(1)
    assert lines() == [
        'took{quantile="0.5"} 1',
        'took{quantile="0.9"} 5',
        'took{quantile="0.99"} 5',
        "took_sum 6",
        "took_count 2",
    ]
    now[0] = minutes(60)
    assert lines()[2:] == ['took{quantile="0.99"} 1', "took_sum 6", "took_count 2"]
    now[0] = minutes(90)
    assert lines()[0] == 'took{quantile="0.5"} NaN'
    assert lines()[-1] == "took_count 2"


VALUES = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)


@given(st.dictionaries(st.tuples(VALUES, VALUES), st.floats(allow_nan=False), max_size=6), VALUES)
def test_labels_survive_the_official_reader(series, text):
    """Whatever a label holds, the official Python client reads the same."""
    registry = Registry()
    gauge = registry.gauge("some", text, labels=("a", "b"))
    for values, number in series.items():
        gauge.set(number, *values)
    read = [
        one for family in text_string_to_metric_families(registry.text().decode()) for one in family.samples
    ]
    assert {(one.labels["a"], one.labels["b"]): one.value for one in read} == series


@given(st.lists(st.floats(0, 20), max_size=30))
def test_a_histogram_counts_each_value_below_its_bounds(seen):
    """A bucket has all values up to its bound, the last one all there are."""
    registry = Registry()
    histogram = registry.histogram("some", "", buckets=(0.5, 1, 2.5, 10))
    for value in seen:
        histogram.observe(value)
    (family,) = text_string_to_metric_families(registry.text().decode())
    buckets = {one.labels["le"]: one.value for one in family.samples if one.name == "some_bucket"}
    assert buckets == {
        le: sum(value <= float(le) for value in seen) for le in ("0.5", "1", "2.5", "10", "+Inf")
    }
    assert {one.name: one.value for one in family.samples if "le" not in one.labels} == {
        "some_sum": pytest.approx(sum(seen)),
        "some_count": len(seen),
    }


def test_collectors_set_what_is_worked_out_at_a_scrape():
    """A gauge that nobody maintains is set at a scrape."""
    registry = Registry()
    gauge, asked = registry.gauge("asked", "Scrapes."), []
    registry.before_scrape(lambda: gauge.set(len(asked)))
    for count in (0, 1, 2):
        assert f"\nasked {count}\n" in registry.text().decode()
        asked.append(count)


def test_clearing_forgets_series_with_labels():
    """Series of objects that were deleted disappear from the page; a gauge without labels stays."""
    registry = Registry()
    gauge, plain = registry.gauge("some", "", labels=("a",)), registry.gauge("plain", "")
    gauge.set(1, "x")
    plain.set(1)
    gauge.clear()
    plain.clear()
    assert registry.text() == b"# HELP plain \n# TYPE plain gauge\nplain 1\n"


def test_mistakes_are_refused():
    """A name twice, values that are not those of the labels, labels out of order."""
    registry = Registry()
    counter = registry.counter("some", "", labels=("a", "b"))
    with pytest.raises(ValueError, match="the series some is there already"):
        registry.gauge("some", "")
    with pytest.raises(ValueError, match=r"some: \('x',\) are not the values of \('a', 'b'\)"):
        counter.add(1, "x")
    with pytest.raises(ValueError, match="other: name the labels in alphabetical order: a, b"):
        registry.counter("other", "", labels=("b", "a"))
    assert [(one.name, one.kind, one.labels) for one in registry.families] == [
        ("some", "counter", ("a", "b"))
    ]
