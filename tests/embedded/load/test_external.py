"""External metrics from traces."""

from __future__ import annotations

import asyncio

import pytest
from tests.embedded.load.worlds import START, HandClock, answer

from kubetide.embedded.load import (
    ConstantTrace,
    DailyTrace,
    EmbeddedExternalMetrics,
    ExternalSeries,
    SeriesTrace,
)
from kubetide.ports.errors import MetricsError
from kubetide.testing.metrics_battery import EXTERNAL_CASES, ExternalUnderTest
from kubetide.units.time import ZERO, after, hours, minutes, seconds

STEP = seconds(15)
MINUTE = minutes(1)
FETCHING = "unable to fetch metrics from external metrics API: "
SERIES = (
    ExternalSeries("queue_messages_ready", ConstantTrace(7.0), {"queue": "orders"}),
    ExternalSeries("queue_messages_ready", ConstantTrace(2.5), {"queue": "mail"}),
    ExternalSeries("queue_messages_ready", ConstantTrace(1.0), {"queue": "orders"}, "far"),
    ExternalSeries("deliveries", ConstantTrace(3.0)),
)


def source_of(series=SERIES, at=MINUTE, scrape_delay=ZERO):
    clock = HandClock()
    clock.time = after(START, at)
    return EmbeddedExternalMetrics(series, clock, start=START, step=STEP, scrape_delay=scrape_delay)


def values(source, metric="queue_messages_ready", namespace="default", selector=""):
    return list(answer(source.external_values(metric, namespace=namespace, selector=selector)).milli)


@pytest.mark.parametrize("case", EXTERNAL_CASES, ids=lambda case: case.__name__)
def test_the_embedded_source_passes_the_battery(case):
    """The embedded external metrics do what the port promises."""
    labels = [dict(series.labels) for series in SERIES[:2]]
    asyncio.run(case(ExternalUnderTest(source_of(), "queue_messages_ready", "default", labels)))


def test_a_namespace_sees_its_own_series_and_those_of_all():
    """A series without a namespace is everybody's."""
    assert values(source_of()) == [7_000, 2_500]
    assert values(source_of(), namespace="far") == [7_000, 2_500, 1_000]
    assert values(source_of(), namespace="far", selector="queue=orders") == [7_000, 1_000]


def test_a_value_is_the_mean_of_the_newest_step():
    """Between two ends of steps nothing changes; a step that has not ended counts for nothing."""
    trace = SeriesTrace([0.0, 60.0, 120.0], step=minutes(1), start=START, name="t")
    series = (ExternalSeries("m", trace),)
    found = {
        second: values(source_of(series, seconds(second)), "m")
        for second in (15, 60, 74, 75, 90, 134, 135, 180)
    }
    assert found == {
        15: [0], 60: [0], 74: [0], 75: [60_000], 90: [60_000], 134: [60_000], 135: [120_000], 180: [120_000],
    }  # fmt: skip


def test_values_carry_the_time_of_their_step():
    """The time is the end of the step, as of a scrape; a delay shows older steps."""
    asked = source_of(at=seconds(59)).external_values("deliveries", namespace="default")
    assert answer(asked).timestamp_ns == after(START, seconds(45))
    asked = source_of(at=MINUTE, scrape_delay=seconds(20)).external_values("deliveries", namespace="x")
    assert answer(asked).timestamp_ns == after(START, seconds(30))


def test_the_same_seed_gives_the_same_values_and_names_differ():
    """Noise comes from the seed and the series' name."""

    def day(name, seed=1):
        trace = DailyTrace(low=10, peak=20, peak_at=hours(14), noise=0.1, seed=seed, name=name)
        return values(source_of((ExternalSeries("m", trace),), hours(3)), "m")

    assert day("a") == day("a")
    assert day("a") != day("b")
    assert day("a") != day("a", seed=2)


@pytest.mark.parametrize(
    ("metric", "selector", "text"),
    [
        ("deliveries", "queue=orders", "no metrics returned from external metrics API"),
        (
            "nope",
            "",
            FETCHING + "the server could not find the metric nope for namespaces",
        ),
    ],
)
def test_what_is_not_there_is_refused(metric, selector, text):
    """A metric without such series is empty; one that nobody knows is not found."""
    with pytest.raises(MetricsError) as caught:
        values(source_of(), metric, selector=selector)
    assert str(caught.value) == text


def test_before_the_first_step_there_are_no_values():
    """The first value comes with the end of the first step."""
    with pytest.raises(MetricsError, match="no metrics returned"):
        values(source_of(at=seconds(14)))
