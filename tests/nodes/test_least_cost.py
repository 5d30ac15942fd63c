"""``--expander=least-cost``: one choice over all groups, by the filters' word, within all limits, with its bound."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.nodes import live
from tests.nodes.frozen import World, daemon_set, group, node, pod, pods, template
from tests.nodes.test_inter_pod_rules import APP, HOSTNAME, ZONE, apart, near, spread

from kubetide.nodes.decision import IncreaseSize
from kubetide.nodes.expander import ExpanderError, parse_expanders
from kubetide.nodes.explain.answers import explain_pod
from kubetide.ports.cloud import GroupOptions
from kubetide.scheduling import Snapshot, place
from kubetide.units.time import minutes, seconds

LEAST_COST = {"expander": "least-cost"}


def sized(name, cpu, memory, price, *, maximum=10, labels=None, **fields):
    made = template(cpu=str(cpu), memory=f"{memory}Gi", labels=labels)
    return group(name, made=made, maximum=maximum, price_per_hour=price, **fields)


def world(*groups, demand, **flags):
    return World(groups=groups, pods=demand, settings={**LEAST_COST, **flags})


def take_all(bought, groups, demand):
    """Whether the filters let all pods onto the nodes bought, in some order of trying."""
    snapshot = Snapshot()
    for one in groups:
        for number in range(bought.get(one.id, 0)):
            snapshot.add_template(one.template.node, (), f"{one.id}-{number}")
    return not place(snapshot, sorted(demand, key=lambda one: one.metadata.name)).unplaced


def test_each_kind_of_pods_goes_where_it_is_cheapest_in_one_tick():
    """Pods of cpu and pods of memory buy from two groups at once, each pod's event names its own group."""
    groups = [sized("balanced", 4, 16, 0.20), sized("compute", 4, 8, 0.15), sized("memory", 4, 32, 0.25)]
    demand = [
        *pods("c", 4, cpu="3900m", memory="1Gi", of="c"),
        *pods("m", 4, cpu="200m", memory="30Gi", of="m"),
    ]
    made = world(*groups, demand=demand)
    assert made.increases() == {"compute": 4, "memory": 4}
    assert made.messages("TriggeredScaleUp") == [
        *["pod triggered scale-up: [{compute 0->4 (max: 10)}]"] * 4,
        *["pod triggered scale-up: [{memory 0->4 (max: 10)}]"] * 4,
    ]
    together = [one for one in made.reasons if one.code == "ChosenTogether"]
    assert [one.subject for one in together] == ["compute", "memory"]
    assert together[0].fields["price"] == "1.6000"
    assert made.increases(at=seconds(10)) == {}


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_of_nodes_for_one_price_jobs_get_the_small_ones(policy):
    """A job keeps its node until it ends; what others leave of a large node is given back by moving them."""
    groups = [sized("a-large", 16, 64, 0.8), sized("b-small", 4, 16, 0.2), sized("c-middle", 8, 32, 0.4)]

    def bought(demand):
        made = world(*groups, demand=demand)
        found = made.increases()
        cost_summary = made.state.tick.cost_summary
        assert cost_summary.price == pytest.approx(0.8)
        assert cost_summary.gap == pytest.approx(0.0, abs=1e-4)
        return found

    ends = {"spec": {"restartPolicy": policy}}
    assert bought(pods("job", 16, cpu="1", memory="1Gi", **ends)) == {"b-small": 4}
    assert bought(pods("web", 16, cpu="1", memory="1Gi")) == {"a-large": 1}
    mixed = [*pods("job", 5, cpu="1", memory="1Gi", **ends), *pods("web", 11, cpu="1", memory="1Gi")]
    assert bought(mixed) == {"a-large": 1}


def test_jobs_get_nodes_that_cost_nothing():
    """Machines of one's own may have the price 0."""
    groups = [sized("racks", 16, 64, 0.0), sized("shelf", 4, 16, 0.0)]
    demand = pods("job", 16, cpu="1", memory="1Gi", spec={"restartPolicy": "Never"})
    made = world(*groups, demand=demand)
    assert sum(made.increases().values()) >= 1
    assert made.state.tick.cost_summary.price == 0.0
    assert made.state.tick.cost_summary.left == 0


def test_small_nodes_for_jobs_cost_no_more():
    """A larger node that is cheaper for its pods is bought for jobs, too."""
    groups = [sized("large", 16, 64, 0.799), sized("small", 4, 16, 0.2)]
    demand = pods("job", 16, cpu="1", memory="1Gi", spec={"restartPolicy": "Never"})
    assert world(*groups, demand=demand).increases() == {"large": 1}


GROUPS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 20), st.integers(0, 5)), min_size=1, max_size=4
)
KINDS = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4), st.integers(0, 4)),
    min_size=1,
    max_size=6,
)
RULES = ({}, {}, apart(), spread(HOSTNAME), {"spec": {"nodeSelector": {ZONE: "a"}}})


@settings(max_examples=40, deadline=None)
@given(groups=GROUPS, kinds=KINDS, total=st.integers(0, 8), cores=st.integers(0, 40))
def test_nothing_passes_a_limit_and_helped_pods_are_helped(groups, kinds, total, cores):
    """For any demand the groups' maxima, nodes and cores hold, and the helped pods fit on the bought nodes."""
    made = [
        sized(f"g{at}", cpu, 4 * cpu, price / 10, maximum=maximum, labels={ZONE: "ab"[at % 2]})
        for at, (cpu, price, maximum) in enumerate(groups)
    ]
    demand = [
        pod(
            f"p{at}-{number}",
            cpu=f"{cpu}00m",
            memory=f"{memory}Gi",
            of="web" if rule in (2, 3) else f"w{at}",
            **RULES[rule],
        )
        for at, (cpu, memory, count, rule) in enumerate(kinds)
        for number in range(count)
    ]
    limits = {"max_nodes_total": total, "cores_total": f"0:{cores}"}
    tried = world(*made, demand=demand, **limits)
    bought = tried.increases()
    for one in made:
        assert bought.get(one.id, 0) <= one.max_size
    assert total == 0 or sum(bought.values()) <= total
    sizes = {one.id: int(groups[at][0]) for at, one in enumerate(made)}
    assert sum(sizes[name] * count for name, count in bought.items()) <= cores
    state = tried.state
    helped = [one for option in state.tick.chosen for one in option.pods]
    assert len({one.metadata.name for one in helped}) == len(helped)
    cost_summary = state.tick.cost_summary
    if cost_summary is not None:
        price = sum(one.price_per_hour * bought.get(one.id, 0) for one in made)
        assert cost_summary.price == pytest.approx(price)
        assert cost_summary.bound <= cost_summary.price * (1 + 1e-6) + 1e-9
    for option in state.tick.chosen:
        assert option.nodes == bought[option.group.id]
    assert fits_somehow(state, helped)


def fits_somehow(state, helped):
    """Whether each pod alone, and all by amounts, fit the nodes bought."""
    for option in state.tick.chosen:
        cpu = sum(int(one.spec.containers[0].resources.requests["cpu"][:-1]) for one in option.pods)
        memory = sum(int(one.spec.containers[0].resources.requests["memory"][:-2]) for one in option.pods)
        there = option.template.node.status.allocatable
        if cpu > 1000 * int(there["cpu"]) * option.nodes or memory > int(there["memory"][:-2]) * option.nodes:
            return False
        if any(not take_all({option.group.id: 1}, [option.group], [one]) for one in option.pods):
            return False
    return True


@settings(max_examples=25, deadline=None)
@given(
    count=st.integers(1, 6),
    plain=st.integers(0, 12),
    rule=st.sampled_from([apart(), spread(HOSTNAME), near("web", HOSTNAME), near("web")]),
)
def test_pods_with_inter_pod_rules_get_what_the_filters_require(count, plain, rule):
    """All get nodes in one choice; where the scheduler, which knows no plan, leaves pods over, two ticks buy for them."""
    groups = [
        sized("a", 4, 16, 0.2, labels={ZONE: "a"}, maximum=20),
        sized("b", 8, 32, 0.3, labels={ZONE: "b"}, maximum=20),
    ]
    demand = [
        *pods("x", count, cpu="900m", memory="1Gi", **rule),
        *pods("y", plain, cpu="1500m", memory="2Gi", of="y"),
    ]
    made = world(*groups, demand=demand)
    bought = made.increases()
    assert made.state.tick.cost_summary.left == 0
    assert sum(len(option.pods) for option in made.state.tick.chosen) == len(demand)
    if rule == apart():
        assert sum(bought.values()) >= count
    for later in (10, 20):
        more = made.increases(at=seconds(later))
    assert more == {}
    assert not made.state.tick.demand.pods


def test_gaps_on_nodes_for_pods_apart_are_filled_before_more_is_bought():
    """Three pods with anti-affinity need three nodes; other pods go onto those."""
    demand = [*pods("x", 3, cpu="100m", **apart()), *pods("y", 6, cpu="1900m", of="y")]
    assert world(sized("g", 4, 16, 0.2), demand=demand).increases() == {"g": 3}


def test_a_pod_that_others_exclude_is_placed_apart():
    """Pods with anti-affinity to ``web`` exclude plain ``web`` pods from their nodes, also in one choice."""
    term = {"labelSelector": APP, "topologyKey": HOSTNAME}
    lonely = {
        "spec": {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    }
    demand = [*pods("x", 2, cpu="100m", of="shy", **lonely), *pods("y", 4, cpu="900m", of="web")]
    bought = world(sized("g", 4, 16, 0.2), demand=demand).increases()
    assert bought == {"g": 2}


def test_daemons_take_their_part_of_each_node():
    """With a DaemonSet of one core, a node of four cores holds three pods of a core."""
    tried = World(
        groups=[sized("g", 4, 16, 0.2)],
        pods=pods("x", 6, cpu="1"),
        daemon_sets=(daemon_set("agent", cpu="1"),),
        settings=LEAST_COST,
    )
    assert tried.increases() == {"g": 2}


def test_similar_groups_share_the_increase():
    """Groups that differ in the zone alone and have one price are balanced when the flag is set."""
    groups = [sized("a", 4, 16, 0.2, labels={ZONE: "a"}), sized("b", 4, 16, 0.2, labels={ZONE: "b"})]
    tried = world(*groups, demand=pods("x", 4, cpu="3"), balance_similar_node_groups=True)
    assert tried.increases() == {"a": 2, "b": 2}


@pytest.mark.parametrize("others", [0, 2])
def test_pods_bound_to_a_zone_get_a_node_of_a_similar_group(others):
    """Groups that could share an increase are offered apart where one of them alone takes some of the pods."""
    groups = [sized(zone, 4, 16, 0.2, labels={ZONE: zone}) for zone in ("a", "b", "c")]
    bound = pods("x", 2, cpu="3", of="x", spec={"nodeSelector": {ZONE: "b"}})
    free = pods("y", others, cpu="3", of="y")
    tried = world(*groups, demand=[*bound, *free], balance_similar_node_groups=True)
    increases = tried.increases()
    assert increases["b"] >= 2
    assert sum(increases.values()) == 2 + others


def test_a_group_that_grows_to_its_maximum_only_is_bought_whole():
    """A group with all-or-nothing sizes serves pods that no other takes, with all its nodes."""
    whole = sized("tpu", 8, 32, 1.0, maximum=3, options=GroupOptions(zero_or_max_node_scaling=True))
    tried = world(
        whole, sized("small", 2, 8, 0.1), demand=[pod("big", cpu="7"), *pods("x", 2, cpu="1", of="x")]
    )
    assert tried.increases() == {"tpu": 3}
    assert {one.metadata.name for one in tried.state.tick.chosen[0].pods} == {"big", "x-0", "x-1"}


def test_a_group_in_backoff_is_passed_over():
    """The cheap group refuses; in the next tick the expensive one grows."""
    tried = world(sized("cheap", 4, 16, 0.1), sized("dear", 4, 16, 0.5), demand=pods("x", 2, cpu="3"))
    tried.refused["cheap"] = "no capacity"
    assert tried.increases() == {"cheap": 2}
    assert tried.increases(at=seconds(10)) == {"dear": 2}


def test_what_the_limit_leaves_waits_and_says_so():
    """If two more nodes are allowed, the two that help most are bought, and the rest is named."""
    tried = world(sized("g", 4, 16, 0.2), demand=pods("x", 5, cpu="3"), max_nodes_total=2)
    assert tried.increases() == {"g": 2}
    assert [one.fields["pods"] for one in tried.reasons if one.code == "LeftForLater"] == [3]
    assert [one.message for one in tried.events if one.reason == "MaxNodesTotalReached"] == [
        "Max total nodes in cluster reached: 2"
    ]


def test_a_group_without_a_price_is_left_out_and_says_why():
    """No price, no comparison: the group is skipped, and the explanation says what would help."""
    tried = world(group("g"), demand=[pod("x")])
    assert tried.increases() == {}
    assert tried.state.tick.result == "ScaleUpNoOptionsAvailable"
    found = explain_pod(tried.state, ("default", "x"), tried.now)
    assert "no price per hour is known" in found.groups[0].why
    assert found.way_out.text == "give group g a price per hour"
    assert found.way_out.verified


def test_the_explanation_of_a_pod_has_the_bound():
    """The explanation has the nodes that are bought together, their price and the lower bound of any choice."""
    tried = world(sized("g", 4, 16, 0.25), demand=pods("x", 2, cpu="3"))
    found = explain_pod(tried.state, ("default", "x-0"), tried.now)
    assert found.status == "helped"
    assert found.cost_summary == (
        "For all waiting pods together 2 nodes of 1 group are bought for 0.5000 an hour, its own of group g. "
        "The same pods cost at least 0.5000 (column generation), so this costs at most 0.00% too much."
    )


def test_later_in_the_chain_it_only_compares():
    """As the second expander it settles a tie of the first by the price of a pod, and one group grows."""
    groups = [sized("a", 4, 16, 0.3), sized("b", 4, 16, 0.2)]
    tried = World(groups=groups, pods=pods("x", 2, cpu="3"), settings={"expander": "least-waste,least-cost"})
    assert tried.increases() == {"b": 2}
    assert tried.state.tick.cost_summary is None


def test_existing_nodes_are_full_of_their_own():
    """Free capacity is used before anything is bought, as always."""
    tried = World(
        groups=[sized("g", 4, 16, 0.2, nodes=("n1",))],
        nodes=[node("n1")],
        pods=pods("x", 3, cpu="2"),
        settings=LEAST_COST,
    )
    assert tried.increases() == {"g": 1}


def test_without_the_solver_the_flag_says_what_to_install(monkeypatch):
    """HiGHS is an extra: without it least-cost cannot be the first, and the message names the extra."""
    monkeypatch.setitem(sys.modules, "highspy", None)
    with pytest.raises(ExpanderError, match=r"pip install .highspy"):
        parse_expanders("least-cost")
    assert parse_expanders("least-waste,least-cost")


def test_pods_of_a_size_of_their_own_each_are_planned_one_by_one():
    """Forty sizes of one pod each are no work for column generation, and yet near the bound."""
    groups = [sized(f"g{cpu}", cpu, 4 * cpu, 0.05 * cpu) for cpu in (2, 4, 8)]
    demand = [
        pod(f"p{at}", cpu=f"{300 + 37 * at}m", memory=f"{900 + 71 * at}Mi", kind="") for at in range(40)
    ]
    made = world(*groups, demand=demand)
    made.tick()
    cost_summary = made.state.tick.cost_summary
    assert (cost_summary.left, cost_summary.rounds) == (0, 0)
    assert sum(len(option.pods) for option in made.state.tick.chosen) == 40
    assert cost_summary.gap < 0.1


class Offloading(live.World):
    """A world whose loop does long work in another thread; counts it in the first tick, of two records, and later."""

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.first = self.later = 0

        async def offload(work):
            assert self.controller.deciding
            is_first = len(self.recorder.lines) < 2
            self.first += is_first
            self.later += not is_first
            await self.clock.sleep(seconds(1))
            return work()

        self.controller._offload = offload


@pytest.mark.parametrize(("expander", "offloaded"), [("least-cost", True), ("least-waste", False)])
def test_only_what_may_take_long_is_offloaded(expander, offloaded, monkeypatch):
    """Decisions with waiting pods and the solver are, and all of a tick that records a large state; records still replay."""
    monkeypatch.setattr("kubetide.nodes.controller.controller.PIECES_FROM", 0)

    async def story(world):
        await world.deploy(replicas=6, cpu="1500m")
        await world.after(minutes(5))
        assert world.pending == []
        assert not world.controller.deciding

    played = live.play(story, world_of=Offloading, expander=expander, full_every=1000)
    assert played.first == 3, "the state is made anew, and both steps are decided"
    assert bool(played.later) == offloaded
    assert live.replayed(played) > 20


def test_a_search_that_was_cut_says_so(monkeypatch):
    """Where the work allowed does not suffice the reasons say that it is the best so far."""
    monkeypatch.setattr("kubetide.nodes.expander.least_cost.buy.MOST_WORK", 100)
    demand = [
        pod(f"p{at}", cpu=f"{300 + 137 * at}m", memory=f"{1 + at % 5}Gi", of=f"w{at}") for at in range(20)
    ]
    tried = world(
        sized("a", 4, 16, 0.2, maximum=9), sized("b", 8, 16, 0.33), sized("c", 2, 16, 0.15), demand=demand
    )
    tried.tick()
    (cut,) = [one for one in tried.reasons if one.code == "SearchCut"]
    assert set(cut.fields) == {"price", "gap"}


def test_the_same_state_gives_the_same_commands():
    """Deciding twice gives the same increases, reasons and numbers."""

    def run():
        demand = [
            pod(f"p{at}", cpu=f"{300 + 137 * (at % 5)}m", memory=f"{1 + at % 5}Gi", of=f"w{at % 5}")
            for at in range(20)
        ]
        tried = world(
            sized("a", 4, 16, 0.2, maximum=9), sized("b", 8, 16, 0.33), sized("c", 2, 16, 0.15), demand=demand
        )
        actions = [one for one in tried.tick() if isinstance(one, IncreaseSize)]
        return actions, tried.reasons

    assert run() == run()
