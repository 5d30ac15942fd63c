"""Thousands of pods of which no two are alike: the work grows linearly, and little memory is held for deleted pods."""

from __future__ import annotations

import cProfile
import pstats

import msgspec
import pytest
from tests.bad_input import crowds
from tests.embedded.controllers.live import play
from tests.nodes.frozen import LONG_AGO, World, group, template
from tests.scheduling.plain import make_node

from kubetide.objects.kinds import NODES, PODS
from kubetide.objects.pod import Pod
from kubetide.scheduling import Limits, Snapshot, equivalence_groups, estimate
from kubetide.scheduling.columns import rows
from kubetide.scheduling.snapshot import store as snapshot_store

UNSCHEDULED = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}


def put(live, kind, body):
    """Store an object unchecked: requests are not tested here."""
    name, namespace = body["metadata"]["name"], "shop" if kind.namespaced else ""
    identity = {"uid": f"{kind.plural}-{name}", "creationTimestamp": "2026-03-02T05:00:00Z"}
    meta = {**body["metadata"], **identity, **({"namespace": namespace} if namespace else {})}
    named = {"apiVersion": kind.api_version, "kind": kind.kind, **body, "metadata": meta}
    live.cluster._store.put(kind, (namespace, name), named)


def calls_of(work):
    """How many calls of functions some work takes: the same in every run."""
    profile = cProfile.Profile()
    profile.enable()
    work()
    profile.disable()
    return pstats.Stats(profile).total_calls


def scheduled(kinds, count, nodes=30):
    """Play the scheduler over pods of these kinds by turns; return how many were bound."""

    async def body(live):
        for number in range(nodes):
            put(live, NODES, crowds.node(number))
        await live.sleep(1)
        for number in range(count):
            put(live, PODS, crowds.pod(kinds[number % len(kinds)], number))
        await live.sleep(5)
        assert live.running["scheduler"].errors == 0
        return sum(bool(pod.spec.node_name) for pod in live.pods.objects.values())

    return play(body, "scheduler")


def in_the_loop(kinds, count, groups=2):
    """Return a world of the node loop where such pods wait, and no nodes are."""
    waiting = []
    for number in range(count):
        body = crowds.pod(kinds[number % len(kinds)], number)
        identity = {"namespace": "default", "uid": f"u{number}", "creationTimestamp": LONG_AGO}
        status = {"phase": "Pending", "conditions": [UNSCHEDULED]}
        waiting.append(
            msgspec.convert({**body, "metadata": {**body["metadata"], **identity}, "status": status}, Pod)
        )
    zones = [{crowds.ZONE: f"z{number}"} for number in range(groups)]
    return World(
        pods=waiting,
        groups=[
            group(f"g{number}", maximum=5000, made=template(cpu="8", labels=zones[number]))
            for number in range(groups)
        ],
        settings={"max_nodes_per_scaleup": 5000},
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(crowds.KINDS))
def test_the_scheduler_s_work_grows_as_the_pods_do(kind, monkeypatch):
    """Four times as many pods are four times the work, also with more counts than are cached while unused."""
    monkeypatch.setattr(snapshot_store, "COUNT_COLUMNS_BEFORE_FORGETTING", 64)
    few, many = (calls_of(lambda count=count: scheduled([kind], count)) for count in (150, 600))
    assert many < 5.5 * few


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(crowds.KINDS))
def test_the_node_loop_s_work_grows_as_the_pods_do(kind):
    """Four times as many pods are four times the work of a tick, and the logarithm of sorting them."""
    few, many = (in_the_loop([kind], count) for count in (100, 400))
    assert calls_of(many.tick) < 6 * calls_of(few.tick)


@pytest.mark.slow
def test_ten_thousand_classes_are_scheduled():
    """Of ten thousand different pods those that fit are bound, and each other pod gets the reason why not."""
    kinds = [*crowds.PLACED, "half for no node"]
    asked = [kinds[number % len(kinds)] for number in range(10_000)]
    in_vain = sum(kind == "half for no node" and number % 2 for number, kind in enumerate(asked))
    assert scheduled(kinds, 10_000, nodes=100) == 10_000 - in_vain


@pytest.mark.slow
def test_ten_thousand_classes_get_their_nodes():
    """One tick buys nodes for ten thousand pods of which no two are alike."""
    world = in_the_loop(["sizes", "tolerations", "node affinity", "apart from their own"], 10_000, groups=1)
    (bought,) = world.increases().values()
    assert bought >= 32  # 255 CPUs, eight a node


def apart(count):
    """Pods of one size, each with anti-affinity to the pods of its own app."""
    return [
        msgspec.convert({**one, "metadata": {**one["metadata"], "namespace": "default"}}, Pod)
        for one in (crowds.pod("apart from their own", number) for number in range(count))
    ]


def test_counts_of_few_pods_take_little():
    """A cluster's length of numbers is held for no label that a handful of pods bear, and rightly added up."""
    snapshot, count = Snapshot(), 60
    for number in range(100):
        snapshot.set_node(make_node(f"n{number}", memory=str(1 << 30)))
    pods = apart(count)
    for number, one in enumerate(pods):
        snapshot.add_pod(one, f"n{number}")
    fits = estimate(
        snapshot, make_node("template", memory=str(1 << 30)), (), equivalence_groups(pods), Limits()
    )
    assert sum(map(len, fits.scheduled)) == count
    columns = snapshot._store.compacted().counts.values()
    assert len(columns) >= 2 * count
    assert all(column.few is not None for column in columns)
    assert all(table.few is not None for column in columns for table in column.tables.values())


def test_counts_of_deleted_pods_are_dropped(monkeypatch):
    """The counts of classes without pods are dropped, and the remaining counts are right."""
    monkeypatch.setattr(snapshot_store, "COUNT_COLUMNS_BEFORE_FORGETTING", 40)
    monkeypatch.setattr(rows, "POD_INDEX_CHANGES", 40)
    snapshot = Snapshot()
    for number in range(4):
        snapshot.set_node(make_node(f"n{number}", memory=str(1 << 30)))
    pods = apart(400)
    for number, one in enumerate(pods):
        snapshot.add_pod(one, "n0")
        assert not snapshot.fits(snapshot.placed_on("n0")[-1][2], "n0")
        if number >= 5:
            snapshot.remove_pod(("default", f"p{number - 5}"))
        kinds = snapshot._store.compacted()._kinds
        assert kinds is None or len(kinds.kinds) <= 60
    assert len(snapshot._store.compacted().counts) <= 60
    assert [pod.metadata.name for pod in snapshot.pods_on("n0")] == [
        f"p{number}" for number in range(395, 400)
    ]
