"""Targets that the node groups can hold: an option beyond upstream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.vertical.recommender.running import WEB, Run, pod, vpa

from kubetide.objects.vpa import ContainerPolicy, ResourcePolicy
from kubetide.plan.board import Board, NodeSize
from kubetide.units.quantity import milli, whole
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.dump import dump
from kubetide.vertical.recommender.explain import explain, explain_vpa
from kubetide.vertical.recommender.facts.hpas import LeftResource
from kubetide.vertical.recommender.facts.views import Requested, StatusView
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.targets.fitting import fit_of, sizes_to_fit

GIB = 1 << 30
SMALL, BIG = NodeSize(1900, 6 * GIB), NodeSize(3800, 14 * GIB)


def used(*rows, sizes=(), policy=None):
    """A pass over one pod with two containers."""
    run = Run()
    run.tick(*rows, vpas=[vpa(policy=policy)], pods=[pod(containers=("app", "log"))], sizes=sizes)
    return run


def targets(run, part="target"):
    found = run.status().recommendation.container_recommendations
    return {
        one.container_name: (milli(getattr(one, part)["cpu"]), whole(getattr(one, part)["memory"]))
        for one in found
    }


APP, LOG = ("web-1", "app", 4000, 3 * GIB), ("web-1", "log", 1000, GIB)


def test_the_containers_of_a_pod_fit_a_node_together():
    """Both give in proportion, on the group that holds most; the uncapped target stays what was estimated."""
    free, held = used(APP, LOG), used(APP, LOG, sizes=(SMALL, BIG))
    (app, log), (app_held, log_held) = targets(free).values(), targets(held).values()
    assert app[0] + log[0] > BIG.cpu_milli
    assert BIG.cpu_milli - 2 <= app_held[0] + log_held[0] <= BIG.cpu_milli
    assert abs(app_held[0] / log_held[0] - app[0] / log[0]) < 0.01
    assert (app_held[1], log_held[1]) == (app[1], log[1])
    assert targets(held, "uncapped_target") == targets(free, "uncapped_target")
    said = "\n".join(explain(held.state, *WEB, "app"))
    assert "the containers of the pod together must fit a new node, which has 3800m CPU and 14Gi left" in said


OFF = ContainerPolicy(container_name="log", mode="Off")
NO_CPU = ContainerPolicy(container_name="log", controlled_resources=("memory",))


@pytest.mark.parametrize(
    ("policy", "left", "cpu"),
    [
        (OFF, (), BIG.cpu_milli - 1500),
        (NO_CPU, (), BIG.cpu_milli - 1500),
        (None, (LeftResource("web", "cpu", "log"),), BIG.cpu_milli - 1500),
        (None, (), None),
    ],
    ids=["off", "uncontrolled", "hpa", "both"],
)
def test_what_is_not_recommended_keeps_what_it_requests(policy, left, cpu):
    """A container that a VPA leaves alone takes its request of the node; what it uses counts for nothing."""
    asks = {"app": Requested(100, GIB, 0), "log": Requested(1500, GIB, 0)}
    settings = Settings(fit_node_groups=True)
    run = Run(settings)
    policies = None if policy is None else ResourcePolicy(container_policies=(policy,))
    run.tick(
        *(APP, LOG),
        vpas=[vpa(policy=policies, left=left)],
        pods=[
            pod(containers=("app", "log"), resources=asks),
            pod("web-2", resources={"log": Requested(9, 9, 0)}),
        ],
        sizes=(SMALL, BIG),
    )
    found = run.status().recommendation.container_recommendations
    given = {one.container_name: milli(one.target["cpu"]) for one in found if "cpu" in one.target}
    total = BIG.cpu_milli if cpu is None else cpu
    assert total - 2 <= sum(given.values()) <= total
    said = "\n".join(explain(run.state, *WEB, "app"))
    assert f"which has {total}m CPU" in said


def test_a_node_that_cannot_hold_the_other_containers_lowers_nothing():
    """No target is made small for a node on which the pod cannot be in any case."""
    asks = {"log": Requested(8000, GIB, 0)}
    policies = ResourcePolicy(container_policies=(OFF,))
    run = Run(Settings(fit_node_groups=True))
    pods = [pod(containers=("app", "log"), resources=asks)]
    run.tick(APP, LOG, vpas=[vpa(policy=policies)], pods=pods, sizes=(SMALL, BIG))
    assert milli(run.target()["cpu"]) > BIG.cpu_milli


def test_a_recommendation_stays_as_it_is_until_node_sizes_are_known():
    """After a restart the cloud may not answer for a while: targets that no node has room for must not be written meanwhile."""
    before = used(APP, LOG, sizes=(SMALL,))
    run = Run(Settings(fit_node_groups=True))
    mine = vpa()
    stored = StatusView(*WEB, before.status())
    pods = [pod(containers=("app", "log"))]
    run.tick(APP, LOG, vpas=[mine], pods=pods, statuses=[stored])
    assert targets(run) == targets(before)
    assert explain_vpa(run.state, *WEB)[0].startswith("Its recommendation stays as it is")
    run.tick(APP, LOG, sizes=(BIG,))
    assert sum(cpu for cpu, _ in targets(run).values()) > SMALL.cpu_milli

    fresh = Run(Settings(fit_node_groups=True))
    fresh.tick(APP, LOG, vpas=[mine], pods=pods)
    assert fresh.status().recommendation.container_recommendations is None


def test_only_a_node_loop_that_has_not_spoken_yet_is_waited_for():
    """Without a node loop, and without groups whose nodes are known, nothing is limited, and nothing waits."""
    board, alone = Board(), Board()
    board.tells_sizes = True
    assert sizes_to_fit(board) == ()
    board.sizes = (SMALL,)
    assert sizes_to_fit(board) == (SMALL,)
    board.sizes = ()
    for nothing_known in (board, alone, None):
        assert fit_of(1 << 40, 1 << 60, sizes_to_fit(nothing_known)) is None
        assert sizes_to_fit(nothing_known)


def test_what_fits_is_left_alone_and_a_minimum_of_a_policy_wins():
    """One group that holds it is enough; what a person demands is not lowered."""
    assert targets(used(APP, LOG, sizes=(SMALL, NodeSize(8000, 30 * GIB)))) == targets(used(APP, LOG))
    policy = ResourcePolicy(
        container_policies=(ContainerPolicy(container_name="app", min_allowed={"cpu": "5"}),)
    )
    assert targets(used(APP, LOG, sizes=(SMALL,), policy=policy))["app"][0] == 5000


@given(
    cpu=st.integers(0, 10**6),
    memory=st.integers(0, 10**13),
    sizes=st.lists(st.builds(NodeSize, st.integers(0, 10**6), st.integers(0, 10**13)), max_size=5),
)
def test_a_fitted_pod_fits(cpu, memory, sizes):
    """Whatever the sizes: what is lowered fits the size that is named, and no pod that fits is lowered."""
    fit = fit_of(cpu, memory, sizes)
    if any(size.cpu_milli >= cpu and size.memory_bytes >= memory for size in sizes) or not sizes:
        assert fit is None
        return
    assert int(cpu * fit.cpu * (1 - 1e-12)) <= fit.size.cpu_milli
    assert int(memory * fit.memory * (1 - 1e-12)) <= fit.size.memory_bytes
    assert fit.size in sizes


def test_a_record_holds_the_sizes():
    """A core that begins at a full record lowers the same."""
    first = ALGORITHM.core()
    run = used(APP, LOG, sizes=(SMALL,))
    start = Delta(at=run.now, vpas=[vpa()], pods=[pod()], sizes=(SMALL,))
    first.apply(ALGORITHM.encode(start), full=False)
    second = ALGORITHM.core()
    second.apply(ALGORITHM.encode(dump(first.state)), full=True)
    assert first.decide(run.now) == second.decide(run.now)
    assert ALGORITHM.encode(dump(second.state)) == ALGORITHM.encode(dump(first.state))
