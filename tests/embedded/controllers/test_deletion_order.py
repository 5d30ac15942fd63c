from __future__ import annotations

from itertools import permutations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubetide.embedded.controllers.workloads.deletion_order import removal_order
from kubetide.objects.pod import DELETION_COST, Pod
from kubetide.units.time import after, format_rfc3339, minutes, parse_rfc3339, seconds

EPOCH = parse_rfc3339("2026-03-02T00:00:00Z")
NOW = after(EPOCH, minutes(1000))


def pod(name, *, node="n1", phase="Running", ready=0, cost=None, restarts=0, created=0):
    """A pod; ``ready`` and ``created`` are seconds since EPOCH, ``ready`` None if it is not ready."""
    conditions = []
    if ready is not None:
        since = format_rfc3339(after(EPOCH, seconds(ready)))
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": since}]
    body = {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": format_rfc3339(after(EPOCH, seconds(created))),
            "annotations": {} if cost is None else {DELETION_COST: cost},
        },
        "spec": {"nodeName": node},
        "status": {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{"name": "app", "restartCount": restarts}],
        },
    }
    return msgspec.convert(body, Pod)


def order(*pods, on_node=None):
    return [each.metadata.name for each in removal_order(pods, on_node or {}, NOW)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("z", node="", phase="Pending", ready=None), pod("a", phase="Pending", ready=None)),
        (pod("z", phase="Pending", ready=None), pod("a", phase="Unknown", ready=None)),
        (pod("z", phase="Unknown", ready=None), pod("a", ready=None)),
        (pod("z", ready=None), pod("a")),
        (pod("z", cost="-5"), pod("a")),
        (pod("z"), pod("a", cost="1")),
        (pod("z", cost="9"), pod("a", cost="10")),
        (pod("z", node="full", ready=0), pod("a", node="n1", ready=50_000)),
        (pod("z", ready=59_900), pod("a", ready=0)),
        (pod("z", restarts=2), pod("a", restarts=1)),
        (pod("z", created=59_900), pod("a", created=0)),
        (pod("a"), pod("z")),
    ],
)
def test_which_of_two_goes_first(first, second):
    """Unassigned, earlier phase, not ready, cheaper, crowded node, later ready, restarts, later made, uid."""
    on_node = {"full": 3, "n1": 2}
    assert order(first, second, on_node=on_node) == order(second, first, on_node=on_node)
    assert order(second, first, on_node=on_node) == [first.metadata.name, second.metadata.name]


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        (pod("z", node="", phase="Pending", ready=None, cost="100"), pod("a", ready=None, cost="-100")),
        (pod("z", ready=None, cost="100"), pod("a", cost="-100")),
        (pod("z", cost="-1", node="n1"), pod("a", node="full")),
        (pod("z", node="full", ready=0), pod("a", node="n1", ready=59_900)),
        (pod("z", ready=59_900, restarts=0), pod("a", ready=0, restarts=9)),
    ],
)
def test_an_earlier_rule_beats_all_later_ones(better, worse):
    """Rules are asked in order: a later one decides only between pods that are equal before it."""
    assert order(worse, better, on_node={"full": 3, "n1": 2})[0] == better.metadata.name


@pytest.mark.parametrize("cost", ["+5", "05", "-05", "2147483648", "five", "", "1.5"])
def test_a_cost_that_cannot_be_read_is_none(cost):
    """A deletion cost that is not a 32-bit integer in plain digits counts as 0."""
    assert order(pod("b", cost=cost), pod("a", cost="0")) == ["a", "b"]
    assert order(pod("b", cost=cost), pod("a", cost="1")) == ["b", "a"]


def test_about_the_same_age_is_equal():
    """Ages within one power of two are equal: the uid decides, so no zone is always the newest."""
    old, older = pod("b", ready=0), pod("a", ready=20_000)
    assert order(old, older) == ["a", "b"]
    old, older = pod("a", ready=0), pod("b", ready=20_000)
    assert order(old, older) == ["a", "b"]


PODS = st.builds(
    pod,
    st.just(""),
    node=st.sampled_from(["", "n1", "n2"]),
    phase=st.sampled_from(["Pending", "Running"]),
    ready=st.sampled_from([None, 0, 40_000, 59_900]),
    cost=st.sampled_from([None, "-1", "7"]),
    restarts=st.integers(0, 2),
    created=st.sampled_from([0, 50_000]),
)


@given(st.lists(PODS, min_size=1, max_size=4), st.integers(0, 4))
def test_the_order_does_not_hang_on_how_pods_are_given(pods, count):
    """Where ages are equal or of other magnitudes, any arrangement gives one order; fewer are its beginning."""
    named = [
        msgspec.structs.replace(
            each, metadata=msgspec.structs.replace(each.metadata, name=f"p{number}", uid=f"u{number}")
        )
        for number, each in enumerate(pods)
    ]
    on_node = {"n1": 2, "n2": 1}
    whole = order(*named, on_node=on_node)
    for arranged in permutations(named):
        found = [each.metadata.name for each in removal_order(arranged, on_node, NOW, count)]
        assert found == whole[:count]
