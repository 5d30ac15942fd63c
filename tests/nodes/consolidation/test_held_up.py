"""What may wait or be refused for ever, and must not keep other nodes from being moved."""

from __future__ import annotations

from msgspec.structs import replace
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.nodes.frozen import pod

from kubetide.units.time import minutes

LARGE, SMALL = ("large", 16, 0.8), ("small", 4, 0.2)


def fleet(*groups, places, **more):
    return Fleet([priced(*one) for one in groups], places, **more)


def test_a_pod_that_no_group_takes_holds_nothing_up():
    """It may wait for ever; what the other pods cost is another matter."""
    impossible = pod("impossible", cpu="500")
    made = fleet(LARGE, SMALL, places={"large": [[2000]]}, more=[impossible])
    assert made.run(minutes(4)).kinds() == {"small": 1}
    assert not made.state.pods["default", "impossible"].spec.node_name


def test_a_pod_that_waits_at_the_maximum_of_nodes_holds_nothing_up():
    """Where --max-nodes-total is reached some pod may wait for ever."""
    waiting = pod("waiting", cpu="500")
    made = fleet(LARGE, SMALL, places={"small": [[3500], [], []]}, more=[waiting], max_nodes_total=3)
    assert made.run(minutes(9)).kinds() == {"small": 1}


def test_at_the_maximum_of_nodes_merging_makes_room_for_pods_that_wait():
    """Two nodes are all that the cluster may have; once the pods of both are on one, the pod that waits gets another."""
    waiting = pod("waiting", cpu="3500m")
    made = fleet(
        SMALL,
        places={"small": [[2500], [900]]},
        more=[waiting],
        max_nodes_total=2,
        scale_down_utilization_threshold=0.1,
    )
    assert made.run(minutes(6)).kinds() == {"small": 2}
    assert any(name.startswith("small-new") for name in made.state.nodes)


def test_a_pod_that_asks_for_a_long_delay_holds_nothing_up():
    """A pod may delay its own scale-up by as long as it likes, not the moves of others."""
    delay = {"annotations": {"cluster-autoscaler.kubernetes.io/pod-scale-up-delay": "8760h"}}
    patient = pod("patient", cpu="500", metadata=delay)
    made = fleet(LARGE, SMALL, places={"large": [[2000]]}, more=[patient])
    assert made.run(minutes(4)).kinds() == {"small": 1}


def test_nodes_whose_pods_fit_nowhere_keep_no_others_from_being_tried():
    """A search tries a hundred removals, the most valuable first; those that were in vain come last in the next one."""
    made = fleet(LARGE, SMALL, places={"large": [[8000], *[[15500]] * 101], "small": [[1500, 1500]] * 2})
    assert made.run(minutes(6)).kinds() == {"large": 102}
    assert [one.subject for one in made.chosen] == ["small-0", "small-1"]


def test_new_nodes_that_filters_refuse_keep_no_others_from_being_tried():
    """By their sizes four dear nodes fit on a large one; their pods exclude each other, and a search tries forty new nodes."""
    apart = {"labelSelector": {"matchLabels": {"rule": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}}
    alone = [
        pod(f"alone-{at}", cpu="3800m", node=f"dear-{at}", metadata={"labels": {"rule": "apart"}}, spec=rule)
        for at in range(180)
    ]
    made = Fleet(
        [
            priced("large", 16, 0.5),
            replace(priced("dear", 4, 0.3), max_size=180),
            replace(priced("small", 4, 0.2), max_size=4),
        ],
        {"dear": [[]] * 180, "small": [[3000]] * 4},
        more=alone,
    )
    made.run(minutes(5))
    assert {"small-0", "small-1", "small-2", "small-3"} <= {one.subject for one in made.chosen}
