"""Expanders of other packages: what they return, and what becomes of a tick in which one fails."""

from __future__ import annotations

import msgspec
import pytest
from tests.nodes.frozen import World, group, pod, template

from kubetide.nodes.reasons import VOCABULARY

SERVICE = {"grpc_expander_url": "expander:7000", "grpc_expander_cert": "cert.pem"}


def raises(options, context):
    return options[context.nodes + 9]


def returns_nothing(options, context):
    """An expander whose author forgot to return."""
    del options, context


def returns_more(options, context):
    """An expander that changes an option instead of choosing."""
    del context
    return [msgspec.structs.replace(options[0], nodes=9)]


def returns_one(options, context):
    """An expander that returns an option instead of options."""
    del context
    return options[0]


def turns_round(options, context):
    """An expander that returns its best first, in an order of its own."""
    del context
    return [options[1], options[0], options[1]]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("raises", "IndexError: list index out of range"),
        ("returns_nothing", "TypeError: 'NoneType' object is not iterable"),
        ("returns_more", "it returned what is none of the options that it was given"),
        ("returns_one", "TypeError: 'Option' object is not iterable"),
    ],
)
def test_a_plug_in_that_fails_leaves_all_groups_and_is_named(name, why):
    """A mistake in an expander of one's own ends no tick: the next one of the chain chooses, and a reason names it."""
    own = f"{__name__}:{name}"
    large = group("b", made=template(cpu="64"))
    world = World(groups=[group("a"), large], pods=[pod("p")], settings={"expander": f"{own},least-waste"})
    assert world.increases() == {"a": 1}
    (failed,) = [one for one in world.reasons if one.code == "ExpanderFailed"]
    assert VOCABULARY.text(failed) == f"group a: the expander {own} failed and left all groups: {why}"


@pytest.mark.parametrize("expander", [f"{__name__}:raises", "priority", f"{__name__}:raises,grpc"])
def test_the_only_group_is_not_said_to_be_chosen_by_an_expander_that_failed(expander):
    """One that failed, or has no map, chooses nothing."""
    world = World(groups=[group("a")], pods=[pod("p")], settings={"expander": expander, **SERVICE})
    world.tick()
    (chosen,) = [one for one in world.reasons if one.code == "Chosen"]
    assert VOCABULARY.text(chosen) == "group a is chosen by being the only one: 1 node for 1 pod"


def test_what_a_plug_in_returns_stands_in_the_order_given():
    """Its own order, or an option named twice, decides nothing: of what is left one is drawn."""
    world = World(
        groups=[group("a"), group("b"), group("c")],
        pods=[pod("p")],
        settings={"expander": f"{__name__}:turns_round"},
    )
    world.tick()
    assert world.state.tick.drawn_among == ("a", "b")
