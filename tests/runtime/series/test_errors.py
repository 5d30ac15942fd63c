"""``cluster_autoscaler_errors_total``: calls whose failure ends a tick of upstream's."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes.live import START
from tests.runtime.series.reading import read
from tests.runtime.series.scraped import Scraped

from kubetide.explain.records import Record
from kubetide.nodes.decision import AddTaint, Commands, DecreaseTarget, Outcome, Outcomes
from kubetide.nodes.facts.nodes import TO_BE_DELETED
from kubetide.nodes.series import NodesSeries
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.exposition import Registry

WRONG_SIZES = (DecreaseTarget("g", 1, "size"), DecreaseTarget("h", 1, "size"))
LEAVING = (AddTaint("n1", TO_BE_DELETED, "1", "NoSchedule"),)


def record_of(actions, outcome):
    commands, outcomes = Commands(actions=actions), Outcomes((outcome,) * len(actions))
    encode = msgspec.json.encode
    return Record(
        "nodes", 1, START, commands=msgspec.Raw(encode(commands)), outcomes=msgspec.Raw(encode(outcomes))
    )


@pytest.mark.parametrize(
    ("actions", "status", "counted"),
    [
        (WRONG_SIZES, "failed", {"cloudProviderError": 1}),
        (LEAVING, "failed", {"apiCallError": 1}),
        (WRONG_SIZES, "ok", {}),
        (LEAVING, "withheld", {}),
        ((DecreaseTarget("g", 1, "timeout"),), "failed", {}),
        ((AddTaint("n1", "other", "1", "NoSchedule"),), "failed", {}),
    ],
)
def test_a_tick_counts_once_for_the_calls_that_failed(actions, status, counted):
    """Those after which upstream goes on do not count."""

    async def main(clock):
        registry = Registry()
        series = NodesSeries(registry, Scraped(clock).controller, clock)
        series.on_record(record_of(actions, Outcome(status, "no")))
        found = read(registry, "cluster_autoscaler_errors_")
        assert {key[-1]: value for key, value in found.items() if value} == counted

    run_virtual(main, start=START)
