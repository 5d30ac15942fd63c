"""The snapshot in columns against plain Python over objects, whatever changes it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.scheduling import plain
from tests.scheduling.plain import make_node, make_pod

from kubetide.scheduling import Snapshot, classify


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


def test_first_fit_is_found_far_from_the_start_row():
    """The row that fits may be far behind the start row, or before it."""
    snapshot = Snapshot()
    for index in range(200):
        snapshot.set_node(make_node(f"n{index}", cpu="4000m" if index == 150 else "0m"))
    assert snapshot.first_fit(classify(make_pod(requests={"cpu": "1"})), 3, snapshot.unschedulable) == 150
    assert snapshot.first_fit(classify(make_pod(requests={"cpu": "1"})), 151, snapshot.unschedulable) == 150
