"""How the work of one search for moves grows with node groups."""

from tests.nodes import frozen
from tests.nodes.consolidation.fleet import Fleet, priced
from tests.work import calls_of

HOST = "kubernetes.io/hostname"


def apart(app):
    """The spec of a pod that has no other pod of its app beside it."""
    term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": HOST}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def fleet_with(smaller):
    """Return ten nodes with five pods each, all with rules of their own, that fit only on a node of a smaller group."""
    groups = [priced("large", 16, 0.8), *(priced(f"small-{at:02}", 14, 0.5) for at in range(smaller))]
    pods = [
        frozen.pod(
            f"p-{node}-{at}",
            cpu="9" if at == 0 else "1",
            node=f"large-{node}",
            metadata={"labels": {"app": f"app-{node}-{at}"}},
            spec=apart(f"app-{node}-{at}"),
        )
        for node in range(10)
        for at in range(5)
    ]
    return Fleet(groups, {"large": [[]] * 10}, more=pods)


def test_each_class_of_pods_is_asked_once_for_groups_that_are_alike():
    """With eight times as many groups to buy from, the work of a tick is less than twice as much."""
    calls = []
    for smaller in (6, 48):
        made = fleet_with(smaller)
        calls.append(calls_of(made.minute))
        assert len(made.chosen) == 10
    assert calls[1] < 2 * calls[0]
