"""The summary in words and decisions in a line."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.simulate import made

from kubetide.simulate.outcome.decisions import decision_line, direction, why_lines
from kubetide.simulate.outcome.summary import summarize
from kubetide.simulate.outcome.table import count, decimal, percent, printable, span, summary_table
from kubetide.simulate.outcome.timeline import Mark, NodeLife

PRINTED = """\
shop   2026-03-02 11:00 UTC, 1.00 h, after 3 min of warm-up

service     requests  peak/s  pods  pod-min  SLO min  own step  unserved  slack  rescales
cart         240,000   100.0   2-4      160        1        20     0.50%  17.1%         2
storefront   240,000   100.0   2-4      160        1        20     0.50%  17.1%         2

node group  nodes  node-hours
burst         0-1         0.3
general         2         2.0

cost 0.24 USD   without scaling 0.40   lower bound 0.07   cost over bound 3.51
SLO minutes lost 2   at the load's own step 40
pods started 6   most pods pending 4   pending pod-minutes 2.0   evictions 0
nodes bought 0   nodes removed 0
decisions 5"""


def test_the_summary_of_a_run():
    """The table says what the run came to, each column under its name."""
    text = summary_table(summarize("shop", made.timeline()))
    assert text == PRINTED


def test_a_run_without_services_has_no_objective():
    """Where nothing serves requests, no minute can be lost, and none is counted."""
    text = summary_table(summarize("jobs", made.timeline(services=())))
    assert "SLO" not in text
    assert "own step" not in text
    assert "lower bound 0.07   cost over bound 3.51\npods started 6   most pods pending 4" in text


def test_waits_churn_and_minimum_sizes_are_facts_where_there_are_any():
    """How long pods waited, nodes that came and went soon, and what no decision could have saved."""
    line = made.timeline()
    line.waits = [0.0] * 18 + [60.4, 125.0]
    line.waiting_since = {"default/late": made.at(0)}
    line.prices["general"] = msgspec.structs.replace(line.prices["general"], min_size=1)
    for number, (created, deleted) in enumerate(((20, 40), (30, 150))):
        life = NodeLife(f"node-{number}", "burst", made.at(created), made.at(deleted))
        line.node_lives.append(life)
    text = summary_table(summarize("shop", line))
    assert "cost 0.24 USD   minimum sizes 0.10   without scaling 0.40" in text
    assert (
        "median wait for a node 0s   p95 wait 2m5s   longest wait 1h0m0s   still pending at the end 1" in text
    )
    assert "nodes bought 2   nodes removed 2   lived under 15 min 1   bought back within 15 min 1" in text


def test_pods_that_were_deleted_without_being_asked_are_facts_where_there_are_any():
    """Those that the scheduler preempted, and those of lost nodes."""
    line = msgspec.structs.replace(made.timeline(), evictions=1, preemptions=2, taint_evictions=3)
    text = summary_table(summarize("shop", line))
    assert "evictions 1   preempted 2\nevicted by taints 3\n" in text


@given(st.lists(st.text(max_size=12), max_size=4, unique=True))
@settings(max_examples=50)
def test_rows_of_a_table_are_equally_long(names):
    """Whatever the names, numbers are aligned."""
    text = summary_table(summarize("x", made.timeline(steps=12, services=("a", *names))))
    blocks = text.split("\n\n")
    for block in blocks[1:3]:
        assert len({len(line) for line in block.split("\n")}) == 1


def test_a_run_without_steps_has_a_summary():
    """A run that was stopped at once is summed up as nothing."""
    assert "0.00 h" in summary_table(summarize("none", made.timeline(steps=0)))


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (count(1_234_567.4), "1,234,567"),
        (count(0), "0"),
        (decimal(2.345, 1), "2.3"),
        (decimal(1_000, 1), "1,000"),
        (decimal(999.96, 1), "1,000"),
        (percent(0.0, 2), "0.00%"),
        (percent(0.000_01, 2), "<0.01%"),
        (percent(0.123_4, 1), "12.3%"),
        (span(2, 2), "2"),
        (span(0, 1200), "0-1,200"),
        (printable("a\x1b[31mb\n"), "a\\x1b[31mb\\n"),
        (printable("größe"), "größe"),
    ],
)
def test_numbers_for_people(written, expected):
    """Numbers are written short, and text cannot steer a terminal."""
    assert written == expected


def test_a_decision_in_a_line():
    """A decision is a time, a loop, what was done, and why."""
    mark = Mark(
        at=made.at(4),
        loop="horizontal",
        subject="default/cart",
        title="default/cart: scaled from 2 to 4",
        why=("cpu: 91% is 1.52 of the target", "6 is held at 4", "another"),
        change=2,
    )
    assert why_lines(mark) == ("cpu: 91% is 1.52 of the target", "6 is held at 4", "another")
    assert decision_line(mark) == (
        "11:01:00 horizontal default/cart: scaled from 2 to 4 because "
        "cpu: 91% is 1.52 of the target; 6 is held at 4; another"
    )
    assert direction(mark) == 1
