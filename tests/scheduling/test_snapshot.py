"""The snapshot in columns against plain Python over objects."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling import plain
from tests.scheduling.plain import make_node, make_pod

from kubetide.objects.meta import Condition
from kubetide.objects.node import Taint
from kubetide.objects.pod import Affinity, Toleration
from kubetide.scheduling import Snapshot, classify, classify_unbound


class Model:
    """Nodes and pods in plain dicts, copied whole at each fork."""

    def __init__(self):
        self.nodes = {}
        self.pods = {}
        self.forks = []

    def set_node(self, node):
        self.nodes[node.metadata.name] = node

    def remove_node(self, name):
        self.nodes.pop(name, None)

    def remove_pod(self, name):
        for on_node in self.pods.values():
            on_node.pop(name, None)

    def add_pod(self, pod, node_name):
        name = pod.metadata.name
        before = self.pods.setdefault(node_name, {}).get(name)
        if (
            before is None
            or plain.requests_of(before) != plain.requests_of(pod)
            or sorted(set(plain.ports_of(before))) != sorted(set(plain.ports_of(pod)))
        ):
            self.remove_pod(name)
        self.pods[node_name][name] = pod

    def fork(self):
        self.forks.append((dict(self.nodes), {name: dict(pods) for name, pods in self.pods.items()}))

    def revert(self):
        self.nodes, self.pods = self.forks.pop()

    def commit(self):
        self.forks.pop()

    def on_node(self, name):
        return list(self.pods.get(name, {}).values())


def columns_of(snapshot):
    """All columns as bytes."""
    return {
        kind: {key: column.tobytes() for key, column in getattr(snapshot, kind).items()}
        for kind in ("allocatable", "free", "requested")
    }


def rebuilt(model):
    snapshot = Snapshot()
    for node in model.nodes.values():
        snapshot.set_node(node)
    for name in model.nodes:
        for pod in model.on_node(name):
            snapshot.add_pod(pod, name)
    return snapshot


def without_empty(columns):
    return {kind: {k: v for k, v in of.items() if any(v)} for kind, of in columns.items()}


CHANGES = (
    st.tuples(st.just("set_node"), plain.nodes),
    st.tuples(st.just("remove_node"), st.sampled_from(plain.NAMES)),
    st.tuples(st.just("add_pod"), plain.pods(), st.sampled_from(plain.NAMES)),
    st.tuples(st.just("remove_pod"), st.sampled_from([f"p{i}" for i in range(8)])),
)
FORK, REVERT, COMMIT = (st.tuples(st.just(name)) for name in ("fork", "revert", "commit"))
ASK = st.tuples(st.just("ask"), plain.pods(("asked",)))


def lists_of(*operations, least):
    return st.lists(st.one_of(*operations), min_size=least, max_size=2 * least)


def check(snapshot, model, pod):
    """Compare everything that can be read of the snapshot with the model."""
    assert list(snapshot.node_names) == list(model.nodes)
    pod_class = classify(pod)
    fits = snapshot.feasible(pod_class)
    counts = {}
    for row, (name, node) in enumerate(model.nodes.items()):
        assert snapshot.node(name) is node
        assert snapshot.pods_on(name) == tuple(model.on_node(name))
        verdict = plain.judge(pod, node, model.on_node(name))
        refusal = snapshot.first_refusal(pod_class, name)
        assert (refusal and (refusal.plugin, refusal.reasons)) == verdict
        assert bool(fits[row]) == (verdict is None) == snapshot.fits(pod_class, name)
        for reason in verdict[1] or ("node(s) didn't satisfy plugin(s) [NodeAffinity]",) if verdict else ():
            counts[reason] = counts.get(reason, 0) + 1
    assert snapshot.refusals(pod_class) == counts
    assert without_empty(columns_of(snapshot)) == without_empty(columns_of(rebuilt(model)))


@settings(max_examples=40, deadline=None)
@given(lists_of(*CHANGES, FORK, REVERT, COMMIT, ASK, least=12), plain.pods(("asked",)))
def test_columns_agree_with_plain_python(operations, asked):
    """After any changes, forks and reverts the vectors and reasons equal an evaluation node by node."""
    snapshot, model = Snapshot(), Model()
    asked_class = classify(asked)
    for operation, *arguments in operations:
        # The same class is asked again and again: what is known about it must not outlive a change.
        verdicts = [
            plain.judge(asked, node, model.on_node(name)) is None for name, node in model.nodes.items()
        ]
        assert snapshot.feasible(asked_class).tolist() == verdicts
        # So must what was listed once.
        assert [snapshot.pods_on(name) for name in plain.NAMES] == [
            tuple(model.on_node(name)) for name in plain.NAMES
        ]
        if operation == "ask":
            check(snapshot, model, arguments[0])
        elif operation in {"revert", "commit"} and not model.forks:
            continue
        elif operation == "remove_pod":
            model.remove_pod(arguments[0])
            snapshot.remove_pod(("default", arguments[0]))
        else:
            getattr(model, operation)(*arguments)
            getattr(snapshot, operation)(*arguments)
    check(snapshot, model, asked)


@settings(max_examples=40, deadline=None)
@given(lists_of(*CHANGES, least=6), lists_of(*CHANGES, FORK, REVERT, ASK, least=6), plain.pods(("asked",)))
def test_revert_restores_every_byte(before, inside, asked):
    """Reverting a fork gives back the bytes of all columns, the pods' order and the version."""

    def run(snapshot, operations):
        depth = 0
        for operation, *arguments in operations:
            if operation == "remove_pod":
                snapshot.remove_pod(("default", arguments[0]))
            elif operation == "ask":
                snapshot.feasible(classify(arguments[0]))
            elif operation == "revert":
                if depth:
                    snapshot.revert()
                    depth -= 1
            else:
                depth += operation == "fork"
                getattr(snapshot, operation)(*arguments)
        return depth

    snapshot = Snapshot()
    run(snapshot, before)
    names = list(snapshot.node_names)
    columns = columns_of(snapshot)
    pods = [snapshot.pods_on(name) for name in plain.NAMES]
    fits = snapshot.feasible(classify(asked)).tobytes()
    version = snapshot.version
    snapshot.fork()
    for _ in range(run(snapshot, inside) + 1):
        snapshot.revert()
    assert list(snapshot.node_names) == names
    assert columns_of(snapshot) == columns
    assert [snapshot.pods_on(name) for name in plain.NAMES] == pods
    assert snapshot.version == version
    assert snapshot.feasible(classify(asked)).tobytes() == fits


@given(
    st.lists(plain.nodes, max_size=6), plain.pods(("asked",)), st.integers(0, 12), st.sets(st.integers(0, 5))
)
@settings(max_examples=60, deadline=None)
def test_first_fit_goes_round_once(nodes, pod, start, blocked):
    """The first row that fits is found from the start row on, wrapping around, passing over blocked rows."""
    snapshot = Snapshot()
    for node in nodes:
        snapshot.set_node(node)
    n = len(snapshot)
    mask = snapshot.unschedulable.copy()
    for row in blocked:
        if row < n:
            mask[row] = True
    fits = snapshot.feasible(classify(pod))
    expected = (
        [row for row in [(start + step) % n for step in range(n)] if fits[row] and not mask[row]] if n else []
    )
    assert snapshot.first_fit(classify(pod), start, mask) == (expected[0] if expected else -1)


def test_first_fit_beyond_the_first_looks():
    """A place far behind the start row is found as one nearby is."""
    snapshot = Snapshot()
    for index in range(200):
        snapshot.set_node(make_node(f"n{index}", cpu="4000m" if index == 150 else "0m"))
    assert snapshot.first_fit(classify(make_pod(requests={"cpu": "1"})), 3, snapshot.unschedulable) == 150
    assert snapshot.first_fit(classify(make_pod(requests={"cpu": "1"})), 151, snapshot.unschedulable) == 150


def test_pods_wait_for_their_node():
    """A pod that is observed before its node counts as soon as the node is there, and after it came back."""
    snapshot = Snapshot()
    snapshot.add_pod(make_pod("early", {"cpu": "1"}), "n0")
    assert snapshot.node_of(("default", "early")) == "n0"
    snapshot.set_node(make_node("n0"))
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.remove_node("n0")
    assert not snapshot.node_names
    snapshot.set_node(make_node("n0"))
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.remove_pod(("default", "early"))
    assert snapshot.free["cpu"].tolist() == [4000]
    assert snapshot.node_of(("default", "early")) is None


def test_removed_node_comes_back_last():
    """A node removed and added again goes to the end of the rows."""
    snapshot = Snapshot()
    for name in ("a", "b", "c"):
        snapshot.set_node(make_node(name))
    snapshot.remove_node("a")
    snapshot.set_node(make_node("a"))
    assert list(snapshot.node_names) == ["b", "c", "a"]


def test_version_changes_with_every_change():
    """The version identifies the content: it never has the same number for two contents."""
    snapshot = Snapshot()
    seen = [snapshot.version]

    def changed():
        assert snapshot.version not in seen
        seen.append(snapshot.version)

    node = make_node("n0")
    snapshot.set_node(node)
    changed()
    snapshot.set_node(node)
    assert snapshot.version == seen[-1]
    ready = replace(node, status=replace(node.status, conditions=(Condition(type="Ready", status="True"),)))
    snapshot.set_node(ready)
    changed()
    pod = make_pod("p", {"cpu": "1"})
    snapshot.fork()
    snapshot.add_pod(pod, "n0")
    changed()
    snapshot.revert()
    assert snapshot.version == seen[-2]
    snapshot.add_pod(pod, "n0")
    changed()
    snapshot.add_pod(make_pod("p", {"cpu": "1"}, priority=7), "n0")
    changed()
    snapshot.remove_pod(("default", "p"))
    changed()
    snapshot.remove_pod(("default", "p"))
    assert snapshot.version == seen[-1]


def test_views_cannot_be_written():
    """Arrays that a snapshot returns are read-only."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    vectors = [snapshot.feasible(classify(make_pod())), snapshot.unschedulable]
    vectors += [of["cpu"] for of in (snapshot.free, snapshot.allocatable, snapshot.requested)]
    for vector in vectors:
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 0


def test_fork_must_come_first():
    """Reverting or committing without a fork says what to do."""
    with pytest.raises(RuntimeError, match=r"Snapshot\.fork\(\)"):
        Snapshot().revert()
    with pytest.raises(RuntimeError, match=r"Snapshot\.fork\(\)"):
        Snapshot().commit()


def test_revert_restores_the_order_of_pods():
    """A pod that was removed and that a revert restores has its old position among the node's pods."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    for name in ("a", "b", "c"):
        snapshot.add_pod(make_pod(name), "n0")
    snapshot.fork()
    snapshot.remove_pod(("default", "a"))
    snapshot.add_pod(make_pod("d"), "n0")
    snapshot.revert()
    assert [pod.metadata.name for pod in snapshot.pods_on("n0")] == ["a", "b", "c"]


def test_what_is_known_of_a_class_follows_removed_nodes():
    """A class is evaluated rightly before, inside and after a fork in which a node was removed and filled."""
    snapshot = Snapshot()
    for name in ("n0", "n1", "n2"):
        snapshot.set_node(make_node(name))
    incoming = classify(make_pod("incoming", {"cpu": "1"}))
    assert snapshot.feasible(incoming).tolist() == [True, True, True]
    snapshot.fork()
    snapshot.remove_node("n0")
    assert snapshot.feasible(incoming).tolist() == [True, True]
    snapshot.add_pod(make_pod("big", {"cpu": "4"}), "n1")
    assert snapshot.feasible(incoming).tolist() == [False, True]
    snapshot.revert()
    assert snapshot.feasible(incoming).tolist() == [True, True, True]
    snapshot.add_pod(make_pod("big", {"cpu": "4"}), "n0")
    assert snapshot.feasible(incoming).tolist() == [False, True, True]
    assert [snapshot.fits(incoming, name) for name in snapshot.node_names] == [False, True, True]


def test_inner_commit_is_undone_by_the_outer_revert():
    """Changes that an inner fork commits belong to the outer one."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    snapshot.fork()
    snapshot.fork()
    snapshot.add_pod(make_pod("p", {"cpu": "1"}), "n0")
    snapshot.commit()
    assert snapshot.free["cpu"].tolist() == [3000]
    snapshot.revert()
    assert snapshot.free["cpu"].tolist() == [4000]


def test_templates_are_copied_under_a_name():
    """A template's copy has its own name and hostname and comes with its DaemonSet pods."""
    snapshot = Snapshot()
    template = make_node("template", labels={"zone": "a"})
    for index in range(2):
        snapshot.add_template(template, (make_pod("agent", {"cpu": "500m"}),), f"template-e-{index}")
    assert list(snapshot.node_names) == ["template-e-0", "template-e-1"]
    labels = snapshot.node("template-e-1").metadata.labels
    assert labels == {"kubernetes.io/hostname": "template-e-1", "zone": "a"}
    assert snapshot.free["cpu"].tolist() == [3500, 3500]
    assert template.metadata.name == "template"


def test_amounts_wrap_as_int64():
    """Sums beyond int64 wrap instead of failing, as they do upstream."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory=str(2**63 - 1)))
    for index in range(3):
        snapshot.add_pod(make_pod(f"p{index}", {"memory": str(2**62)}), "n0")
    taken = 3 * 2**62 - 2**64
    assert snapshot.requested["memory"].tolist() == [taken]
    for index in range(3):
        snapshot.remove_pod(("default", f"p{index}"))
    assert snapshot.free["memory"].tolist() == [2**63 - 1]


def test_a_request_beyond_int64_takes_nothing():
    """A pod on a node that asks for 16E counts as one that asks for none: it frees nothing for others."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory="1Gi"))
    snapshot.add_pod(make_pod("vast", {"memory": "16E"}), "n0")
    assert snapshot.requested["memory"].tolist() == [0]
    assert not snapshot.fits(classify(make_pod("q", {"memory": "2Gi"})), "n0")


def test_a_refusal_has_numbers_and_what_refused():
    """A refusal carries the amounts, or the taint or label that refused."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("full", labels={"zone": "a"}))
    snapshot.set_node(make_node("tainted", taints=[Taint(key="gpu", value="yes", effect="NoSchedule")]))
    snapshot.add_pod(make_pod("p", {"cpu": "3500m"}), "full")
    incoming = classify(make_pod("q", {"cpu": "1"}, node_selector={"zone": "a"}))
    short = snapshot.first_refusal(incoming, "full")
    assert short.code == "Unschedulable"
    assert [(n.resource, n.requested, n.free, n.allocatable) for n in short.numbers] == [
        ("cpu", 1000, 500, 4000)
    ]
    assert snapshot.first_refusal(incoming, "tainted").detail == "gpu=yes:NoSchedule"
    tolerant = make_pod(
        "q", {"cpu": "1"}, node_selector={"zone": "a"}, tolerations=(Toleration(operator="Exists"),)
    )
    refused = snapshot.first_refusal(classify(tolerant), "tainted")
    assert refused.detail == "zone=a is asked for, the node has no such label"


def test_a_pod_with_an_unreadable_amount_fits_nowhere():
    """A request that is no quantity refuses the pod everywhere, says so, and raises nothing."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    bad = make_pod("bad", {"cpu": "lots"})
    pod_class = classify(bad)
    assert not snapshot.feasible(pod_class).any()
    refusal = snapshot.first_refusal(pod_class, "n0")
    assert refusal.code == "Error"
    assert '"lots" is not a quantity' in refusal.detail
    snapshot.add_pod(bad, "n0")
    assert snapshot.free["pods"].tolist() == [9]


def test_an_unreadable_allocatable_counts_as_none():
    """A node whose memory cannot be read takes no pod that requests memory."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0", memory="much"))
    assert not snapshot.feasible(classify(make_pod(requests={"memory": "1"}))).any()
    assert snapshot.feasible(classify(make_pod(requests={"cpu": "1"}))).all()


def test_a_pod_with_a_node_may_be_judged_as_if_it_had_none():
    """The class of a bound pod names its node; to move it, that name is left out."""
    snapshot = Snapshot()
    snapshot.set_node(make_node("n0"))
    snapshot.set_node(make_node("n1"))
    pod = make_pod("p", {"cpu": "1"}, node_name="n1")
    assert snapshot.feasible(classify(pod)).tolist() == [False, True]
    assert snapshot.feasible(classify_unbound(pod)).tolist() == [True, True]


def test_what_is_known_of_classes_may_be_forgotten():
    """Verdicts and counts are found anew, the same as before, also for pods that come later; not on a fork."""
    term = {
        "labelSelector": {"matchLabels": {"app": "web"}},
        "topologyKey": "kubernetes.io/hostname",
    }
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    apart = msgspec.convert(rules, Affinity)
    snapshots = [Snapshot(), Snapshot()]
    waiting = classify(make_pod("next", {"cpu": "1"}, labels={"app": "web"}, affinity=apart))
    found = []
    for at, snapshot in enumerate(snapshots):
        for name in ("a", "b", "c"):
            snapshot.set_node(make_node(name))
        snapshot.add_pod(make_pod("p1", {"cpu": "1"}, labels={"app": "web"}, affinity=apart), "a")
        before = snapshot.feasible(waiting).tolist()
        if at:
            snapshot.forget_classes()
        again = snapshot.feasible(waiting).tolist()
        snapshot.add_pod(make_pod("p2", {"cpu": "1"}, labels={"app": "web"}), "b")
        found.append((before, again, snapshot.feasible(waiting).tolist()))
    assert found[0] == found[1]
    assert found[0] == ([False, True, True], [False, True, True], [False, False, True])
    snapshots[0].fork()
    with pytest.raises(RuntimeError, match="on a fork"):
        snapshots[0].forget_classes()
