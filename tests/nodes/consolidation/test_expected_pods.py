"""Capacity that pods use now and then is not given away, and nobody's pods are moved to an overpriced machine."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.nodes import frozen
from tests.nodes.consolidation.fleet import Fleet, priced

from kubetide.nodes.consolidation.expected_pods import Change, greatest_rise, usual_rise
from kubetide.nodes.state import Gone
from kubetide.scheduling import classify_unbound
from kubetide.units.time import after, before, format_rfc3339, minutes, seconds

SMALL = ("small", 4, 0.2)


def with_a_burst(*, pods, **settings):
    """Two nodes where one would do, and pods that came and went within the last ten minutes."""
    made = Fleet(
        [priced(*SMALL)], {"small": [[2500], [900]]}, scale_down_utilization_threshold=0.1, **settings
    )
    came = format_rfc3339(before(frozen.START, minutes(10)))
    burst = [frozen.pod(f"burst-{at}", cpu="1500m", node="small-1", created=came) for at in range(pods)]
    made.apply(pods=tuple(burst))
    made.apply(gone=Gone(pods=tuple(("default", pod.metadata.name) for pod in burst)))
    return made


def test_capacity_that_was_in_use_lately_stays():
    """The node goes half an hour after the burst, and not before."""
    made = with_a_burst(pods=2)
    assert made.run(minutes(20)).kinds() == {"small": 2}
    assert made.run(minutes(20)).kinds() == {"small": 1}


def test_a_single_pod_is_not_expected_again():
    """In half an hour one came: keeping a node for the next costs more than buying it back (--buy-back-price)."""
    assert with_a_burst(pods=1).run(minutes(5)).kinds() == {"small": 1}
    made = with_a_burst(pods=1, buy_back_price=minutes(31))
    made.state.memory.last_scale_up = before(frozen.START, minutes(60))
    assert made.run(minutes(5)).kinds() == {"small": 2}


def test_pods_that_went_are_remembered_for_half_an_hour():
    """Those that consolidation itself moved among them; nothing is remembered without the flag."""
    made = with_a_burst(pods=2)
    made.minute()
    assert {"burst-0", "burst-1"} <= {one.pod.metadata.name for one in made.state.memory.consolidation.gone}
    made.run(minutes(62))
    assert made.state.memory.consolidation.gone == ()
    other = with_a_burst(pods=2, consolidation_enabled=False)
    other.minute()
    assert other.state.memory.consolidation.gone_since == ()


def test_an_overpriced_machine_is_replaced_before_pods_are_moved_to_it():
    """Its capacity is available for a fifth of the price: pods of other nodes are no reason to retain it."""
    groups = [priced("dear", 16, 4.0), priced("plain", 16, 0.8)]
    made = Fleet(groups, {"dear": [[8000]], "plain": [[9000], [4250, 4250]]})
    made.minute()
    first = made.chosen[0]
    assert first.subject == "dear-0"
    assert "a node of group plain replaces it" in first.fields["why"]
    assert list(made.run(minutes(5)).kinds()) == ["plain"]


def change(at, sign, cpu, name):
    return Change(after(frozen.START, seconds(at)), sign, frozen.pod(name, cpu=f"{cpu}m", node="n"))


def cpus(pods):
    return sorted(classify_unbound(pod).requests["cpu"] for pod in pods)


def test_the_rise_counts_what_came_more_than_it_went():
    """A pod that was made again elsewhere is no demand; two large ones at once are."""
    changes = [
        change(0, -1, 500, "moved"),
        change(0, 1, 500, "moved-again"),
        change(1, 1, 2000, "a"),
        change(2, 1, 2000, "b"),
        change(3, -1, 2000, "a"),
        change(4, 1, 2000, "c"),
        change(5, -1, 2000, "b"),
    ]
    assert cpus(greatest_rise(changes)) == [500, 2000, 2000]
    assert cpus(greatest_rise(changes[2:])) == [2000, 2000]
    assert greatest_rise([change(0, -1, 500, "moved")]) == []


@given(st.lists(st.tuples(st.sampled_from([-1, 1]), st.integers(1, 4)), max_size=12))
def test_no_period_had_a_greater_rise(steps):
    """The expected amount is at least the greatest rise of the pods' requests, and nothing where nothing rose."""
    changes = [change(at, sign, size * 500, f"p{at}") for at, (sign, size) in enumerate(steps)]
    amounts = [sign * size * 500 for sign, size in steps]
    stretches = (sum(amounts[begin:end]) for end in range(len(amounts) + 1) for begin in range(end))
    greatest = max(stretches, default=0)
    found = greatest_rise(changes)
    assert sum(cpus(found)) >= max(0, greatest)
    assert bool(found) == (greatest > 0)


def usual(*minutes_in, horizon=15):
    """Return how many pods are usual half an hour after the start, where one came in each of these minutes, and stayed."""
    changes = [change(60 * at + 30, 1, 500, f"p{at}") for at in sorted(minutes_in)]
    return len(usual_rise(changes, after(frozen.START, minutes(30)), minutes(horizon)))


def test_what_comes_in_most_quarters_of_an_hour_is_usual():
    """One pod in half an hour is not, unless nearly all stretches have it; three pods in ten minutes are the most, and one is usual."""
    assert usual(25) == usual(3) == 0
    assert usual(15) == 1
    assert usual(5, 20) == 1
    assert usual(0, 5, 10, 15, 20, 25) == 3
    assert usual(0, 1, 2, 20) == 1
    assert usual(*range(30), horizon=2) == 2


def test_what_is_usual_ends_with_the_window():
    """A longer time than that of the memory counts as all of it; no time at all leaves nothing to expect."""
    assert usual(0, 29, horizon=300) == 2
    assert usual(*range(30), horizon=0) == 0


@given(st.lists(st.tuples(st.integers(0, 1799), st.sampled_from([-1, 1])), max_size=20), st.integers(1, 30))
def test_half_of_all_stretches_have_the_usual_rise(events, horizon):
    """And so the rise of the other half is not greater."""
    events = sorted(events)
    changes = [change(at, sign, 500, f"p{number}") for number, (at, sign) in enumerate(events)]
    found = len(usual_rise(changes, after(frozen.START, minutes(30)), minutes(horizon)))
    rises = []
    for begin in range(0, 1801 - 60 * horizon, 60):
        signs = [sign for at, sign in events if begin <= at < begin + 60 * horizon]
        rises.append(max([0, *(sum(signs[:end]) for end in range(len(signs) + 1))]))
    assert 2 * sum(rise >= found for rise in rises) >= len(rises)
    assert 2 * sum(rise <= found for rise in rises) >= len(rises)
