"""The contract of every expander, also of added ones; and the list given with the flag."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import World, group, pod, template

from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.expander import EXPANDERS, Context, ExpanderError, choose, parse_expanders
from kubetide.units.time import Instant

CPUS = st.sampled_from([1, 2, 4, 8, 16])
GROUPS = st.lists(st.tuples(CPUS, st.integers(0, 4)), min_size=1, max_size=4)
PODS = st.lists(st.tuples(st.integers(1, 70), st.integers(1, 40)), min_size=1, max_size=12)


def world_of(groups, pods, **settings):
    made = [
        group(f"g{at}", made=template(cpu=str(cpu), memory=f"{4 * cpu}Gi"), maximum=maximum)
        for at, (cpu, maximum) in enumerate(groups)
    ]
    demand = [
        pod(f"p{at:02d}", cpu=f"{cpu}00m", memory=f"{memory}Gi", of=f"w{at}")
        for at, (cpu, memory) in enumerate(pods)
    ]
    return World(groups=made, pods=demand, settings=settings)


@pytest.mark.parametrize("name", list(EXPANDERS))
@settings(max_examples=40, deadline=None)
@given(groups=GROUPS, pods=PODS)
def test_an_expander_only_leaves_out(name, groups, pods):
    """An expander gives some of the options it got, at least one, in the same order, and a second time the same."""
    world = world_of(groups, pods)
    world.tick()
    options = world.state.tick.options
    if not options:
        return
    if name == "price":
        options = [replace(one, group=replace(one.group, price_per_hour=0.1)) for one in options]
    best = EXPANDERS[name](options, Context())
    assert best
    assert [one for one in options if one in best] == best
    assert EXPANDERS[name](best, Context()) == best
    chosen = choose(options, f"{name},random", seed=1, now=Instant(5)).option
    assert chosen in best


@settings(max_examples=60, deadline=None)
@given(groups=GROUPS, pods=PODS, total=st.integers(0, 6))
def test_what_is_bought_fits_and_stays_within_bounds(groups, pods, total):
    """Whatever is demand: no group passes its maximum, the cluster not its limit, and helped pods fit new nodes."""
    world = world_of(groups, pods, max_nodes_total=total)
    bought = {one.group: one.delta for one in world.tick() if isinstance(one, IncreaseSize)}
    sizes = {f"g{at}": size for at, size in enumerate(groups)}
    for name, delta in bought.items():
        assert 0 < delta <= sizes[name][1]
    assert total == 0 or sum(bought.values()) <= total
    if not world.state.tick.chosen:
        return
    (chosen,) = world.state.tick.chosen
    cpu = sizes[chosen.group.id][0]
    milli = [int(one.spec.containers[0].resources.requests["cpu"][:-1]) for one in chosen.pods]
    gib = [int(one.spec.containers[0].resources.requests["memory"][:-2]) for one in chosen.pods]
    assert max(milli) <= 1000 * cpu
    assert max(gib) <= 4 * cpu
    assert sum(milli) <= 1000 * cpu * chosen.nodes
    assert sum(gib) <= 4 * cpu * chosen.nodes


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cheap", "Expander cheap not supported"),
        ("most-pods,most-pods", "most-pods was specified multiple times"),
        ("random,most-pods", "most-pods came after an expander random"),
    ],
)
def test_senseless_lists_are_refused(text, problem):
    """A list with an unknown name, a name twice or anything after random is an error that says so."""
    with pytest.raises(ExpanderError, match=problem):
        parse_expanders(text)
