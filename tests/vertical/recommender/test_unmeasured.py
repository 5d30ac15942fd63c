"""Containers without a sample of usage: nothing is recommended for them where the recommender waits for one."""

from __future__ import annotations

import pytest
from tests.vertical.recommender.running import WEB, Run, pod, vpa

from kubetide.objects.vpa import (
    ContainerPolicy,
    ContainerRecommendation,
    PodRecommendation,
    ResourcePolicy,
    VpaStatus,
)
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.facts.views import StatusView
from kubetide.vertical.recommender.settings import Settings

USAGE = ("web-1", "app", 380, 1 << 29)
WAITS = Settings(wait_for_samples=True)


def provided(run):
    [found] = [one for one in run.status().conditions if one.type == "RecommendationProvided"]
    return found.status, found.reason


def test_nothing_is_recommended_before_the_first_sample():
    """Upstream recommends the pod's minimum then; with the first sample both say the same."""
    run, upstream = Run(WAITS), Run()
    for one in (run, upstream):
        one.tick(vpas=[vpa()], pods=[pod()])
    assert upstream.target() == {"cpu": "25m", "memory": "250Mi"}
    assert run.status().recommendation.container_recommendations is None
    assert provided(run) == ("False", "NoSamples")
    assert explain_vpa(run.state, *WEB)[:2] == [
        "It recommends nothing: app has no sample of usage yet, and gets no recommendation before the first.",
        "shop/web/app: no sample yet; there is no recommendation before the first one",
    ]
    for one in (run, upstream):
        one.tick(USAGE)
    assert run.status().recommendation == upstream.status().recommendation
    assert provided(run) == ("True", "")


def test_what_was_recommended_stays():
    """After a restart that found no checkpoints, while nothing is measured."""
    before = ContainerRecommendation(
        container_name="app",
        target={"cpu": "2", "memory": "3Gi"},
        lower_bound={"cpu": "1", "memory": "2Gi"},
        upper_bound={"cpu": "4", "memory": "6Gi"},
        uncapped_target={"cpu": "2", "memory": "3Gi"},
    )
    status = VpaStatus(recommendation=PodRecommendation(container_recommendations=(before,)))
    run = Run(WAITS)
    run.tick(vpas=[vpa()], statuses=[StatusView(*WEB, status)], pods=[pod()])
    assert run.status().recommendation.container_recommendations == (before,)
    assert provided(run) == ("True", "")
    assert explain_vpa(run.state, *WEB)[0] == (
        "It recommends cpu 2 and memory 3Gi for app: app has no sample of usage yet, so its recommendation stays as it is."
    )


def test_each_container_waits_by_itself():
    """A sidecar that was measured has its recommendation, with the share of the minimum that it has anyway."""
    run, upstream = Run(WAITS), Run()
    for one in (run, upstream):
        one.tick(("web-1", "side", 5, 1 << 20), vpas=[vpa()], pods=[pod(containers=("app", "side"))])
    [made] = run.status().recommendation.container_recommendations
    assert made.container_name == "side"
    assert made in upstream.status().recommendation.container_recommendations


def test_pods_that_are_gone_are_not_waited_for():
    """That no pod matches is said first."""
    run = Run(WAITS)
    run.tick(vpas=[vpa()], pods=[pod()])
    run.tick(gone_pods=[("shop", "web-1")])
    assert provided(run) == ("False", "NoPodsMatched")


@pytest.mark.parametrize(
    ("policy", "pods"),
    [
        (ResourcePolicy(container_policies=(ContainerPolicy(container_name="app", mode="Off"),)), [pod()]),
        (None, []),
    ],
    ids=["off", "no pods"],
)
def test_who_waits_for_nothing_has_upstreams_conditions(policy, pods):
    """Where nothing would be recommended with samples either."""
    run, upstream = Run(WAITS), Run()
    for one in (run, upstream):
        one.tick(vpas=[vpa(policy=policy)], pods=pods)
    assert run.status() == upstream.status()
