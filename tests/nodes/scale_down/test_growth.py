"""How the work and the memory of one evaluation grow with the cluster."""

import tracemalloc

import pytest
from tests.work import calls_of

from kubetide.units.time import seconds

_COPIES = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "kubernetes.io/hostname"}
APART = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [_COPIES]}}}


def spread(of):
    rule = {"topologyKey": "kubernetes.io/hostname", "maxSkew": 9, "whenUnsatisfiable": "DoNotSchedule"}
    return {"topologySpreadConstraints": [{**rule, "labelSelector": {"matchLabels": {"app": of}}}]}


@pytest.fixture
def small_nodes(world):
    def make(nodes):
        made = world(scale_down_unneeded_time=seconds(600)).add_group("a", maximum=1000)
        for number in range(nodes):
            made.add_node(f"a-{number:03}")
        return made

    return make


def test_pods_that_fit_nowhere_are_explained_without_a_look_at_each_node_by_itself(small_nodes):
    """With eight times as many nodes, none of which can go, the work is no more than twelve times as much."""
    calls = []
    for nodes in (20, 160):
        made = small_nodes(nodes)
        for number in range(nodes):
            made.add_pod(f"p-{number}", f"a-{number:03}", spec=APART)
        calls.append(calls_of(made.loop))
        assert len(made.verdicts()) == nodes
        assert made.status.unremovable[0].detail == (
            f"pod default/p-0 fits on none of the {nodes - 1} other nodes: "
            f"{nodes - 1} node(s) didn't match pod anti-affinity rules"
        )
    assert calls[1] < 12 * calls[0]


def test_removable_nodes_leave_no_copy_of_all_counts_behind(small_nodes):
    """Twenty nodes whose pods are spread by hostname are removable, and the evaluation takes a few MiB."""
    made = small_nodes(120)
    for number in range(120):
        for at in range(10):
            of = f"app-{(number + 12 * at) % 120}"
            made.add_pod(f"p-{number}-{at}", f"a-{number:03}", of=of, spec=spread(of))
        for at in range(20):
            of = f"wide-{at}"
            made.add_pod(f"w-{number}-{at}", f"a-{number:03}", of=of, cpu="1m", spec=spread(of))
    tracemalloc.start()
    made.loop()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(made.status.unneeded) == 20
    assert peak < 5 << 20
