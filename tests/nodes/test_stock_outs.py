"""The memory of shortages: by instance type, zone and market, shared by groups, with decay; off by default."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.nodes.frozen import START, World, group, node, pods, template

from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.explain.group_answers import explain_group
from kubetide.nodes.registry.stock_outs import is_out_of_stock, note_shortage, offers_of
from kubetide.ports.cloud import Offering
from kubetide.units.time import after, minutes, seconds

TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"


def of_type(kind, zone="a", **fields):
    return template(labels={TYPE: kind, ZONE: zone}, **fields)


def world(**settings):
    """Two groups of one type, one of the same type elsewhere, one of a larger type."""
    groups = [
        group("a1", made=of_type("m5")),
        group("a2", made=of_type("m5")),
        group("b", made=of_type("m5", "b")),
        group("large", made=of_type("m9", cpu="32")),
    ]
    return World(groups=groups, nodes=[node("n")], pods=pods("p", 4, cpu="3"), settings=settings)


def test_a_failed_increase_is_planned_anew_at_once():
    """After a shortage the same tick requests another offer, and passes over all groups of the one that is out."""
    held = world(stock_out_memory=minutes(30))
    held.cause = "OutOfCapacity"
    held.refused.update(dict.fromkeys(("a1", "a2", "b"), "none left"))
    asked = [one.group for one in held.tick()]
    assert len(asked) == 3
    assert len({"a1", "a2"} & {*asked}) == 1
    assert asked[-1] == "large"
    assert held.groups["large"].target_size == 1


def test_pods_without_another_group_do_not_wait_for_the_end_of_the_memory():
    """One group of the offer is asked after the time of a backoff, and one only; so a short shortage costs no half hour."""
    groups = [group("a1", made=of_type("m5")), group("a2", made=of_type("m5"))]
    held = World(groups=groups, pods=pods("p", 2, cpu="3"), settings={"stock_out_memory": minutes(30)})
    held.cause = "OutOfCapacity"
    held.refused.update(dict.fromkeys(("a1", "a2"), "none left"))
    asked = [len(held.tick(at=minutes(late))) for late in (0, 4, 6, 7)]
    assert asked == [1, 0, 1, 0]
    of = {one.group: one.way_out for one in explain_pod(held.state, ("default", "p-0"), held.now).groups}
    [change] = of["a2"].changes
    assert of["a2"].verified
    assert change.what == (
        "wait until 2026-03-02T08:11:00Z, when m5 a on-demand is asked for again "
        "(out of stock at 2026-03-02T08:06:00Z in group a1)"
    )
    held.refused.clear()
    assert [len(held.tick(at=minutes(late))) for late in (10, 12)] == [0, 1]


def test_a_shortage_is_waited_out_while_another_group_takes_the_pods():
    """Pods that fit the other type as well do not try the one that was out of stock before the end of the memory."""
    held = world(stock_out_memory=minutes(30))
    for group_id in ("a1", "b"):
        note_shortage(held.state, group_id, "OutOfCapacity", held.now)
    assert [one.group for one in held.tick(at=minutes(6))] == ["large"]


def test_without_the_flag_each_group_finds_out_by_itself():
    """As upstream: one failure ends the attempt of this tick, and another group of the offer is asked next."""
    held = world(expander="random", seed=1)
    for name in ("a1", "a2", "b", "large"):
        held.refused[name] = "none left"
    asked = [one.group for tick in range(4) for one in held.tick(at=seconds(10 * tick))]
    assert sorted(asked) == ["a1", "a2", "b", "large"]
    assert held.state.memory.stock_outs == {}


def test_a_group_without_backoff_is_not_asked_twice_in_a_tick():
    """Where a failed group would be chosen again at once, the next tick has to do."""
    held = world(stock_out_memory=minutes(30), initial_node_group_backoff_duration=seconds(0))
    held.refused.update(dict.fromkeys(("a1", "a2", "b", "large"), "no"))
    assert len(held.tick()) == 1


def test_only_shortages_are_remembered():
    """A cloud that fails for another reason says nothing about its stock."""
    held = world(stock_out_memory=minutes(30))
    assert note_shortage(held.state, "a1", "Throttled", START) == []
    assert note_shortage(held.state, "a1", "Quota", START) == []
    assert held.state.memory.stock_outs == {}


def test_shortages_in_a_row_count_for_longer_and_old_ones_for_less():
    """30 minutes, then 60, 120 and no more; long after the last one 30 again."""
    held = world(stock_out_memory=minutes(30))
    now, waits = START, []
    for _ in range(4):
        note_shortage(held.state, "a1", "OutOfCapacity", now)
        (entry,) = held.state.memory.stock_outs.values()
        waits.append((entry.until - now) // minutes(1))
        now = after(entry.until, minutes(1))
    assert waits == [30, 60, 120, 120]
    now = after(now, minutes(61))
    note_shortage(held.state, "a1", "OutOfCapacity", now)
    (entry,) = held.state.memory.stock_outs.values()
    assert (entry.until - now) // minutes(1) == 30


def test_the_machines_of_one_request_fail_one_by_one():
    """Each report begins the time anew; none doubles it, as nothing was requested in between."""
    held = world(stock_out_memory=minutes(30))
    for group_id, late in (("a1", 0), ("a1", 1), ("a2", 2), ("a1", 3)):
        note_shortage(held.state, group_id, "OutOfCapacity", after(START, minutes(late)))
    (entry,) = held.state.memory.stock_outs.values()
    assert (entry.until - START) // minutes(1) == 33


def test_a_group_with_another_way_is_still_asked():
    """A group over two zones is out of stock only when both are; a market of its own is another offer."""
    held = world(stock_out_memory=minutes(30))
    note_shortage(held.state, "a1", "OutOfCapacity", START)
    two = (Offering(instance_type="m5", zone="a"), Offering(instance_type="m5", zone="b"))
    spread = replace(held.groups["a1"], offerings=two)
    assert offers_of(spread) == ("m5 a on-demand", "m5 b on-demand")
    assert not is_out_of_stock(held.state, spread, START)
    spot = replace(held.groups["a1"], offerings=(Offering(instance_type="m5", zone="a", market="spot"),))
    assert not is_out_of_stock(held.state, spot, START)
    assert is_out_of_stock(held.state, held.groups["a2"], START)
    assert not is_out_of_stock(held.state, held.groups["a2"], after(START, minutes(30)))


@pytest.mark.parametrize(
    ("label", "value"),
    [
        ("cloud.google.com/gke-preemptible", "true"),
        ("cloud.google.com/gke-spot", "true"),
        ("eks.amazonaws.com/capacityType", "SPOT"),
        ("karpenter.sh/capacity-type", "spot"),
        ("kubernetes.azure.com/scalesetpriority", "spot"),
    ],
)
def test_without_offerings_labels_say_which_market_it_is(label, value):
    """A shortage on the spot market says nothing of machines on demand."""
    groups = [
        group("spot", made=template(labels={TYPE: "m5", ZONE: "a", label: value})),
        group("demand", made=template(labels={TYPE: "m5", ZONE: "a", label: "no"})),
    ]
    held = World(groups=groups, settings={"stock_out_memory": minutes(30)})
    note_shortage(held.state, "spot", "OutOfCapacity", START)
    assert list(held.state.memory.stock_outs) == ["m5 a spot"]
    assert not is_out_of_stock(held.state, held.groups["demand"], START)


def test_explain_says_who_found_out_and_until_when():
    """A group that never failed itself reports the shortage that another one found."""
    held = world(stock_out_memory=minutes(30))
    note_shortage(held.state, "a1", "OutOfCapacity", START)
    (text,) = explain_group(held.state, "a2", START).obstacles
    assert text == (
        "m5 a on-demand is not asked for before 2026-03-02T08:05:00Z, and until 2026-03-02T08:30:00Z only for pods that "
        "no other group takes: out of stock at 2026-03-02T08:00:00Z in group a1"
    )


def test_a_pod_says_when_machines_that_are_out_of_stock_are_asked_for_again():
    """Of a group that is backed off as well the longer wait counts; groups of one offer say the same."""
    groups = [group("a1", made=of_type("m5")), group("a2", made=of_type("m5"))]
    settings = {"stock_out_memory": minutes(30)}
    held = World(groups=groups, nodes=[node("n", cpu="1")], pods=pods("p", 1, cpu="3"), settings=settings)
    held.cause = "OutOfCapacity"
    held.refused.update({"a1": "none left", "a2": "none left"})
    held.tick()
    found = explain_pod(held.state, ("default", "p-0"), after(START, minutes(1)))
    assert found.way_out is not None
    assert (found.way_out.verified, found.way_out.needs_delivery) == (True, True)
    assert found.way_out.text.startswith(
        "wait until 2026-03-02T08:05:00Z, when m5 a on-demand is asked for again (out of stock at 2026-03-02T08:00:00Z"
    )
    assert {one.way_out.text for one in found.groups if one.way_out} == {found.way_out.text}


def test_explain_does_not_name_a_time_that_is_over():
    """Once the offer may be tried for pods that have no other group, only the end of the preference is named."""
    held = world(stock_out_memory=minutes(30))
    note_shortage(held.state, "a1", "OutOfCapacity", START)
    (text,) = explain_group(held.state, "a2", after(START, minutes(10))).obstacles
    assert text == (
        "m5 a on-demand is asked for until 2026-03-02T08:30:00Z only for pods that no other group takes: "
        "out of stock at 2026-03-02T08:00:00Z in group a1"
    )


def test_explain_does_not_say_that_a_group_with_another_offer_cannot_grow():
    """The shortage of one of its zones is a notice, which says that the group is still asked."""
    held = world(stock_out_memory=minutes(30))
    note_shortage(held.state, "a1", "OutOfCapacity", START)
    two = (Offering(instance_type="m5", zone="a"), Offering(instance_type="m5", zone="b"))
    groups = {**held.groups, "a2": replace(held.groups["a2"], offerings=two)}
    held.state.set_groups(groups.values())
    found = explain_group(held.state, "a2", START)
    assert found.obstacles == ()
    assert found.notices[-1] == (
        "m5 a on-demand was out of stock at 2026-03-02T08:00:00Z in group a1; the group is still asked for nodes, as "
        "it has other offers"
    )
