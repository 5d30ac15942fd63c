"""From the reasons of a record to the marks that a person sees."""

from __future__ import annotations

import pytest
from tests.simulate import made

from kubetide.explain.reasons import Reason
from kubetide.explain.records import Record
from kubetide.horizontal.reasons import VOCABULARY as HORIZONTAL
from kubetide.nodes.reasons import VOCABULARY as NODES
from kubetide.simulate.outcome.marks import marks_of


def marks(loop: str, *reasons: Reason):
    return marks_of(Record(loop=loop, tick=1, now=made.START, reasons=reasons))


def rescaled(*why: Reason):
    done = HORIZONTAL.reason("Rescaled", "default/web", current=2, desired=5)
    (mark,) = marks("horizontal", *why, done)
    return mark


def counted(*, ready: int) -> Reason:
    numbers = {"metric": "cpu", "pods": 4, "ready": ready, "unready": 4 - ready, "missing": 0, "ignored": 0}
    return HORIZONTAL.reason("PodsCounted", "default/web", **numbers)


def proposal(metric: str, proposed: int) -> Reason:
    return HORIZONTAL.reason(
        "MetricProposal",
        "default/web",
        metric=metric,
        value="91%",
        target="60%",
        ratio=1.5167,
        count=3,
        product=4.55,
        proposed=proposed,
    )


WINNER = HORIZONTAL.reason("Winner", "default/web", proposed=5)


def test_a_mark_says_what_was_done_by_how_much_and_why():
    """Title, change and reasons of a rescale are those of its record."""
    mark = rescaled(proposal("cpu", 5))
    assert (mark.title, mark.change) == ("default/web: scaled from 2 to 5", 3)
    assert mark.why == ("cpu: 91% of 60%: ratio 1.517 x 3 pods = 4.55, so 5 replicas",)


def test_reasons_without_information_are_left_out():
    """That all pods count, and the largest of a single proposal, is not shown; it is when it says something."""
    assert len(rescaled(counted(ready=4), proposal("cpu", 5), WINNER).why) == 1
    assert len(rescaled(counted(ready=3), proposal("cpu", 5), proposal("memory", 4), WINNER).why) == 4


def test_reasons_of_others_do_not_mix():
    """A reason belongs to the mark of its own subject."""
    other = HORIZONTAL.reason("Winner", "default/other", proposed=9)
    assert rescaled(proposal("cpu", 5), proposal("memory", 3), other).why == tuple(
        HORIZONTAL.text(reason) for reason in (proposal("cpu", 5), proposal("memory", 3))
    )


def test_a_purchase_says_why_not_elsewhere():
    """The mark of an increase says why its group was chosen and what spoke against the others."""
    against = (
        NODES.reason("GroupSkipped", "general", why="max node group size reached"),
        NODES.reason("GroupRefuses", "memory", pod="default/web-1", why="node(s) had untolerated taint(s)"),
    )
    chosen = NODES.reason("Chosen", "burst", expander="least-waste", nodes=2, pods=3)
    (mark,) = marks("nodes", *against, chosen, NODES.reason("Increased", "burst", size=0, to=2))
    assert mark.change == 2
    assert mark.why == tuple(NODES.text(reason) for reason in (chosen, *against))


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        (NODES.reason("NodeDeleted", "n1", group="g"), -1),
        (NODES.reason("Increased", "g", size=1, to=3), 2),
        (NODES.reason("IncreaseRefused", "g", delta=2, error="no"), 0),
    ],
)
def test_a_mark_counts_nodes(reason, change):
    """A deletion takes one node away, an increase adds its difference, a refusal nothing."""
    assert [mark.change for mark in marks("nodes", reason)] == [change]


def test_a_tick_that_does_nothing_leaves_no_mark():
    """Reasons without an action are no decision to show."""
    assert marks("nodes", NODES.reason("NoDemand")) == []


def test_counts_are_said_with_their_noun():
    """One is singular, more are plural, and a field that an old record lacks shows its name."""
    say = NODES.reason
    assert NODES.text(say("Option", "g", nodes=1, pods=3)) == "group g would hold 3 pods on 1 new node"
    assert NODES.text(say("Option", "g", nodes=2, pods=1)) == "group g would hold 1 pod on 2 new nodes"
    assert NODES.text(say("Option", "g", nodes=2)) == "group g would hold <pods> pods on 2 new nodes"


def test_a_purchase_is_not_explained_by_pods_that_its_group_refuses():
    """Other pods that the group does not take are no reason for its growth; other groups that refuse are."""
    mark, *_ = marks(
        "nodes",
        NODES.reason("GroupRefuses", "big", pod="shop/api", why="Insufficient cpu"),
        NODES.reason("GroupRefuses", "small", pod="shop/web", why="Insufficient memory"),
        NODES.reason("Chosen", "big", expander="random", nodes=1, pods=1),
        NODES.reason("Increased", "big", size=1, to=2),
    )
    assert mark.why == (
        "group big is chosen by random: 1 node for 1 pod",
        "group small cannot hold shop/web: Insufficient memory",
    )
