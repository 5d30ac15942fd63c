"""Properties of every plan, whatever the cluster looks like."""

from __future__ import annotations

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.nodes.scale_down.context import drain_context
from kubetide.nodes.scale_down.decide import decide as decide_scale_down
from kubetide.nodes.scale_down.drain_rules import prepare
from kubetide.nodes.scale_down.facts import Cache
from kubetide.units.time import minutes, seconds

APPS = ("web", "api", "db")

pods = st.tuples(
    st.integers(1, 19),  # cpu, hundreds of millis
    st.sampled_from(APPS),
    st.sampled_from(("ReplicaSet", "ReplicaSet", "ReplicaSet", "DaemonSet", None)),
)
nodes = st.tuples(
    st.sampled_from(("a", "b")), st.lists(pods, max_size=3), st.sampled_from((False, False, True))
)
clusters = st.fixed_dictionaries(
    {
        "nodes": st.lists(nodes, min_size=1, max_size=7),
        "allowed": st.fixed_dictionaries({app: st.integers(0, 3) for app in APPS}),
        "minimum": st.integers(0, 3),
        "drains": st.integers(1, 5),
        "order": st.randoms(use_true_random=False),
    }
)


def build(world, cluster, *, shuffled=False):
    made = world(
        scale_down_unneeded_time=seconds(1),
        max_drain_parallelism=cluster["drains"],
        skip_nodes_with_system_pods=False,
    )
    made.add_group("a", minimum=cluster["minimum"]).add_group("b")
    for app in APPS[1:]:
        made.add_pdb(app, app, cluster["allowed"][app])
    todo = list(enumerate(cluster["nodes"]))
    if shuffled:
        cluster["order"].shuffle(todo)
    for index, (group, on_node, cordoned) in todo:
        name = f"n-{index}"
        made.add_node(name, group=group, spec={"unschedulable": True} if cordoned else {})
        members = list(enumerate(on_node))
        if shuffled:
            cluster["order"].shuffle(members)
        for number, (cpu, app, kind) in members:
            made.add_pod(f"p-{index}-{number}", name, cpu=f"{cpu * 100}m", of=app, kind=kind)
    return made


def cpu_of(pod):
    return int(pod.spec.containers[0].resources.requests["cpu"][:-1])


def fit_elsewhere(bins, sizes):
    """Plain search: whether pods of these sizes fit into these bins in some way."""
    if not sizes:
        return True
    size, *rest = sizes
    for index in {free: position for position, free in enumerate(bins)}.values():
        if bins[index] >= size:
            bins[index] -= size
            if fit_elsewhere(bins, rest):
                bins[index] += size
                return True
            bins[index] += size
    return False


@settings(max_examples=80, deadline=None)
@given(cluster=clusters)
def test_a_plan_breaks_no_promise(cluster, world):
    """No plan drops a group below its minimum, strains a budget for a second node, or leaves a pod without capacity."""
    made = build(world, cluster)
    made.loop()
    made.loop()
    removed = [one.node for one in made.status.scaled_down]
    unneeded = made.status.unneeded

    in_a = [name for name in made.nodes if made.group_of[name] == "a"]
    assert len(in_a) - sum(name in removed for name in in_a) >= min(len(in_a), cluster["minimum"])
    assert sum(one.kind == "drain" for one in made.status.scaled_down) <= cluster["drains"]

    moving = [pod for pod in made.pods.values() if pod.spec.node_name in unneeded and is_moved(pod)]
    assert all(pod.metadata.owner_references for pod in moving)
    for app in APPS[1:]:
        takers = {}
        for pod in moving:
            if pod.metadata.labels["app"] == app:
                takers[pod.spec.node_name] = takers.get(pod.spec.node_name, 0) + 1
        # The last node to take from a budget may need more than is left; those before it may not.
        assert sum(takers.values()) - max(takers.values(), default=0) < max(1, cluster["allowed"][app])
        assert not takers or cluster["allowed"][app] >= 1

    free = [
        4000 - sum(cpu_of(pod) for pod in made.pods.values() if pod.spec.node_name == name)
        for name, node in made.nodes.items()
        if name not in unneeded and not node.spec.unschedulable
    ]
    assert fit_elsewhere(free, sorted((cpu_of(pod) for pod in moving), reverse=True))


def is_moved(pod):
    owners = pod.metadata.owner_references or ()
    return not any(owner.kind == "DaemonSet" for owner in owners)


@settings(max_examples=60, deadline=None)
@given(cluster=clusters)
def test_a_plan_does_not_depend_on_the_order_of_its_input(cluster, world):
    """The same cluster listed in another order is treated the same, node for node."""
    plans = []
    for shuffled in (False, True):
        made = build(world, cluster, shuffled=shuffled)
        first = made.loop().actions
        second = made.loop().actions
        plans.append(
            (first, second, msgspec.json.encode(made.state.memory.scale_down, order="deterministic"))
        )
    assert plans[0] == plans[1]


@settings(max_examples=60, deadline=None)
@given(
    cluster=clusters,
    changes=st.lists(
        st.tuples(st.integers(0, 6), st.integers(1, 30), st.sampled_from((10, 60, 200))), max_size=5
    ),
)
def test_memos_change_nothing(cluster, changes, world):
    """With and without caches between ticks the decisions are equal, tick for tick."""
    runs = []
    for enabled in (True, False):
        made = build(world, cluster)
        made.sync("scale_down")
        made.state.scale_down_cache = Cache(enabled=enabled)
        reported = [made.loop()]
        for step, (index, cpu, advance) in enumerate(changes):
            name = f"n-{index % len(cluster['nodes'])}"
            if name in made.nodes and cpu > 5:
                made.add_pod(f"new-{step}", name, cpu=f"{cpu * 100}m", of=APPS[cpu % 3])
            reported.append(made.loop(seconds(advance)))
            reported.append(made.loop())
            made.settle(seconds(3))
        runs.append((reported, made.events, made.log, made.state.memory.scale_down))
    assert runs[0] == runs[1]


@settings(max_examples=100, deadline=None)
@given(
    drawn=st.lists(
        st.tuples(
            st.sampled_from((*4 * ("ReplicaSet",), "DaemonSet", "StatefulSet")),
            st.sampled_from((None, "true", "false", "on-completion")),
            st.sampled_from((None, "emptyDir", "hostPath")),
            st.sampled_from((*4 * ("default",), "kube-system")),
            st.sampled_from((*4 * (None,), "2025-12-31T23:59:00Z")),
            st.sampled_from(("2026-01-01T00:00:00Z", "2025-12-01T00:00:00Z")),
        ),
        min_size=2,
        max_size=6,
    )
)
def test_pods_that_share_what_is_known_are_judged_alike(drawn, world):
    """The cached answer for a kind of pod is the rules' answer for each of its pods, whoever came first."""
    made = world(skip_nodes_with_local_storage=True)
    made.add_group("a").add_node("n", group="a")
    for number, (kind, safe, volume, namespace, deleted, created) in enumerate(drawn):
        metadata = {"creationTimestamp": created, "deletionTimestamp": deleted}
        if safe is not None:
            metadata["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": safe}
        spec = {"volumes": [{"name": "v", volume: {}}]} if volume else {}
        extra = {"metadata": metadata, "spec": spec}
        made.add_pod(f"p-{number}", "n", kind=kind, namespace=namespace, **extra)
    made.sync("scale_down")
    state, cache = made.state, Cache()
    context = drain_context(state, made.now, cache.allowances(state.pdbs))
    facts = cache.facts(state.snapshot, "n", context, ignore_daemon_sets=False)
    assert cache.prepared(facts, context) == prepare(facts.pods, context)


@settings(max_examples=40, deadline=None)
@given(cluster=clusters)
def test_deciding_leaves_the_snapshot_as_it_was(cluster, world):
    """Trial changes are reverted to the last byte of every column."""
    made = build(world, cluster)
    made.loop()
    snapshot = made.state.snapshot
    before = (snapshot.version, {name: column.tobytes() for name, column in snapshot.free.items()})
    on_nodes = {name: snapshot.pods_on(name) for name in snapshot.node_names}
    decide_scale_down(made.state, made.now + minutes(1))
    assert before == (snapshot.version, {name: column.tobytes() for name, column in snapshot.free.items()})
    assert on_nodes == {name: snapshot.pods_on(name) for name in snapshot.node_names}
