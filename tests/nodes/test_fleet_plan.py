"""One plan for pods with inter-pod rules: played by plain rules over objects, within its limits, the same each time."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.nodes.frozen import World, group, pods, template
from tests.nodes.test_inter_pod_rules import HOSTNAME, ZONE, apart, near, spread
from tests.scheduling import inter_pod, plain

from kubetide.nodes.expander.least_cost.offers import Offer
from kubetide.nodes.expander.least_cost.plan import Item, plan_nodes, play
from kubetide.nodes.expander.least_cost.solver.inter_pod import is_plain
from kubetide.nodes.scale_up.choosing.evaluate import evaluate_templates
from kubetide.nodes.templates.matrix import TemplateMatrix
from kubetide.nodes.templates.template import Template
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling import ClusterFacts, Snapshot, classify, fresh_node

RULES = (
    lambda _: {},
    lambda app: own(apart(), app),
    lambda app: own(spread(HOSTNAME), app),
    lambda app: own(spread(ZONE), app),
    near,
    lambda _: near("a"),
)
FACTS = ClusterFacts(namespaces=inter_pod.NAMESPACES)
GROUPS = ("t0", "t1", "t2", "t3")


def own(rule, app):
    """Return the rule about the pods of another application than ``web``."""
    return msgspec.json.decode(msgspec.json.encode(rule).replace(b'"web"', msgspec.json.encode(app)))


@st.composite
def offers(draw):
    found = []
    daemons = draw(
        st.lists(inter_pod.pods(("d0",)).filter(lambda one: not classify(one).anti_affinity), max_size=1)
    )
    for name in draw(st.lists(st.sampled_from(GROUPS), min_size=2, unique=True)):
        node = draw(inter_pod.nodes((name,)))
        labels = {**(node.metadata.labels or {}), inter_pod.HOSTNAME: name}
        node = replace(node, metadata=replace(node.metadata, labels=labels))
        template = Template(node, tuple(daemons), "cloud", "drawn", fresh_node(node, daemons, FACTS))
        growth = draw(st.integers(1, 12))
        price = draw(st.integers(0, 9)) / 10
        group = NodeGroup(id=name, max_size=growth, price_per_hour=price)
        found.append(
            Offer(group, template, (), price, growth=growth, whole=False, by_arithmetic=True, uses={"cpu": 2})
        )
    return found


@st.composite
def problems(draw):
    """A cluster with pods, offers, and items: pods that are waiting, by class and by the groups that take them."""
    snapshot = Snapshot(FACTS)
    nodes = draw(st.lists(inter_pod.nodes(), max_size=3, unique_by=lambda one: one.metadata.name))
    for node in nodes:
        snapshot.set_node(node)
    key = {"unique_by": lambda one: (one.metadata.namespace, one.metadata.name)}
    for pod in draw(st.lists(inter_pod.pods(), max_size=5, **key)) if nodes else ():
        snapshot.add_pod(pod, draw(st.sampled_from([node.metadata.name for node in nodes])))
    offered = draw(offers())
    names = tuple(f"w{number}" for number in range(40))
    waiting = draw(st.lists(inter_pod.pods(names), min_size=6, max_size=16, **key))
    classes = [one for one in dict.fromkeys(map(classify, waiting)) if is_plain(snapshot, one)]
    judged = evaluate_templates(
        snapshot, TemplateMatrix([one.template for one in offered], snapshot.facts), classes
    )
    items = []
    for pod_class in classes:
        takers = {one.group.id: None for at, one in enumerate(offered) if at not in judged[pod_class]}
        pods = [pod for pod in waiting if classify(pod) == pod_class]
        if takers:
            items.append(Item(pods, pod_class, takers))
    limits = {"most_nodes": draw(st.integers(1, 20)), "left": {"cpu": draw(st.integers(2, 60))}}
    return snapshot, offered, items, limits


def plan(snapshot, offered, items, limits):
    return plan_nodes(snapshot, items, offered, most=[one.growth for one in offered], **limits)


def planned(*problem):
    return plan(*problem).nodes


def cpu_of(pod):
    return int(pod.spec.containers[0].resources.requests["cpu"][:-1])


def refused(pod, node, cluster):
    """Whether plain rules refuse the pod on the node."""
    pods = next(others for other, others in cluster if other is node)
    there = node.status.allocatable
    if len(pods) + 1 > int(there["pods"]):
        return True
    if cpu_of(pod) and sum(map(cpu_of, pods)) + cpu_of(pod) > int(there["cpu"][:-1]):
        return True
    if not inter_pod.selects(pod, node):
        return True
    if any(not plain.tolerated(pod, taint) for taint in node.spec.taints or ()):
        return True
    return bool(inter_pod.judge_spread(pod, node, cluster) or inter_pod.judge_affinity(pod, node, cluster))


@settings(max_examples=80, deadline=None)
@given(problems())
def test_a_plan_for_all_pods_costs_no_less_than_its_bound(problem):
    """Where every pod has a place in the plan, its nodes cost at least the bound."""
    _, offered, items, _ = problem
    assume(items)
    found = plan(*problem)
    assume(sum(len(node.items) for node in found.nodes) == sum(len(item.pods) for item in items))
    price = sum(offered[node.offer].price for node in found.nodes)
    assert 0.0 <= found.bound <= price * (1 + 1e-6) + 1e-9


@settings(max_examples=120, deadline=None)
@given(problems())
def test_what_is_played_holds_by_plain_rules(problem):
    """Pod after pod by level: the filters take each pod onto its node exactly when plain rules do."""
    snapshot, offered, items, limits = problem
    if not items or not offered:
        return
    plan = planned(*problem)
    for at, offer in enumerate(offered):
        assert sum(node.offer == at for node in plan) <= offer.growth
    assert len(plan) <= limits["most_nodes"]
    assert 2 * len(plan) <= limits["left"]["cpu"]
    for number, item in enumerate(items):
        assert sum(node.items.count(number) for node in plan) <= len(item.pods)
    cluster = [(snapshot.node(name), list(snapshot.pods_on(name))) for name in snapshot.node_names]
    names = [f"new-{at}" for at in range(len(plan))]
    for name, node in zip(names, plan, strict=True):
        template = offered[node.offer].template
        snapshot.add_template(template.node, template.pods, name)
        cluster.append((snapshot.node(name), list(snapshot.pods_on(name))))
    new = cluster[len(cluster) - len(plan) :]
    played = play(snapshot, plan, names, items)
    queues = [list(item.pods) for item in items]
    waiting = sorted(
        ((node.levels[place], at, place) for at, node in enumerate(plan) for place in range(len(node.items)))
    )
    before = -1
    while len(waiting) != before:
        before, rest = len(waiting), []
        for level, at, place in waiting:
            number = plan[at].items[place]
            node, pods = new[at]
            if refused(queues[number][0], node, cluster):
                rest.append((level, at, place))
            else:
                pods.append(queues[number].pop(0))
        waiting = rest
    for name, pods, (_, found) in zip(names, played, new, strict=True):
        assert list(snapshot.pods_on(name)) == found
        assert [pod for _, pod in pods] == found[len(found) - len(pods) :]


@st.composite
def demand(draw):
    """Pods of many kinds, most of which have inter-pod rules."""
    sizes = st.tuples(st.sampled_from((100, 700, 1500)), st.integers(1, 3), st.sampled_from("abcd"))
    found = []
    for at, (cpu, count, app) in enumerate(draw(st.lists(sizes, min_size=18, max_size=24))):
        rule = RULES[draw(st.integers(0, len(RULES) - 1))](app)
        found += pods(f"p{at}", count, cpu=f"{cpu + at}m", of=app, kind="", **rule)
    return found


@settings(max_examples=40, deadline=None)
@given(
    demand=demand(), zones=st.lists(st.sampled_from("xyz"), min_size=1, max_size=5), total=st.integers(1, 60)
)
def test_nothing_is_left_that_a_new_node_would_take(demand, zones, total):
    """Pods that a choice leaves over fit on no bought node and, while limits leave one more, on no new node of a group that takes them."""
    groups = [
        group(
            f"g{at}",
            made=template(cpu=str(2 * at + 1), labels={ZONE: zone}),
            maximum=6,
            price_per_hour=0.1 + 0.2 * at,
        )
        for at, zone in enumerate(zones)
    ]
    world = World(groups=groups, pods=demand, settings={"expander": "least-cost", "max_nodes_total": total})
    bought = world.increases()
    assert sum(bought.values()) <= total
    snapshot, helped = Snapshot(), {}
    for option in world.state.tick.chosen:
        assert option.nodes == bought[option.group.id] <= 6
        for number, taken in enumerate(option.plan):
            name = f"{option.group.id}-{number}"
            snapshot.add_template(option.template.node, option.template.pods, name)
            for pod in taken:
                assert pod.metadata.name not in helped
                helped[pod.metadata.name] = name
                snapshot.add_pod(pod, name)
    left = {one.id: [] for one in groups}
    for verdict in world.state.tick.verdicts:
        for group_id in verdict.accepted:
            left[group_id] += [one for one in verdict.pods.pods if one.metadata.name not in helped]
    for option in world.state.tick.chosen:
        for number in range(len(option.plan)):
            name = f"{option.group.id}-{number}"
            assert not [pod for pod in left[option.group.id] if snapshot.fits(classify(pod), name)]
    for at, one in enumerate(groups):
        if sum(bought.values()) < total and bought.get(one.id, 0) < 6:
            snapshot.add_template(one.template.node, (), f"more-{at}")
            assert not [pod for pod in left[one.id] if snapshot.fits(classify(pod), f"more-{at}")]
            snapshot.remove_node(f"more-{at}")


@pytest.mark.parametrize(("large", "bought"), [("2", {"a": 1, "b": 1}), ("2950m", {"a": 1, "b": 2})])
def test_pods_are_tried_again_when_others_let_them_in(large, bought):
    """The first pod fills the only node of its zone, so the next two cannot be near it; a pod without rules then opens the other zone to them."""
    groups = [
        group("a", made=template(cpu="1", labels={ZONE: "x"}), maximum=1, price_per_hour=0.1),
        group("b", made=template(cpu="3", labels={ZONE: "y"}), maximum=3, price_per_hour=0.5),
    ]
    waiting = [
        *pods("first", 1, cpu="950m", of="web", kind="", **spread(HOSTNAME)),
        *pods("near", 2, cpu="100m", of="web", kind="", **near("web")),
        *pods("large", 1, cpu=large, of="web", kind=""),
    ]
    world = World(groups=groups, pods=waiting, settings={"expander": "least-cost"})
    assert world.increases() == bought
    assert sum(len(option.pods) for option in world.state.tick.chosen) == len(waiting)


@settings(max_examples=50, deadline=None)
@given(problems())
def test_the_same_problem_gives_the_same_plan(problem):
    """Twice the same nodes with the same pods."""
    if problem[1] and problem[2]:
        assert planned(*problem) == planned(*problem)
