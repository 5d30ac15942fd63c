"""What ``explain vpa`` says before the numbers: what is recommended, what holds it back, and why pods do not get it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.vertical.recommender.running import START, WEB, Run, pod, samples, vpa

from kubetide.objects.vpa import ContainerPolicy, ResourcePolicy
from kubetide.units.time import after, before, format_rfc3339, hours
from kubetide.vertical.recommender.core import ALGORITHM
from kubetide.vertical.recommender.delta import Delta
from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.recommender.facts.hpas import LeftResource
from kubetide.vertical.recommender.facts.views import Oom
from kubetide.vertical.recommender.reasons import VOCABULARY
from kubetide.vertical.recommender.settings import Settings
from kubetide.vertical.recommender.weekly_change import since_last_week
from kubetide.vertical.targets import Target

USAGE = ("web-1", "app", 380, 1 << 29)
"""Of it 380m and 512Mi are recommended as 442m and 600Mi, by buckets and margin."""


def answer_of(*, settings=None, rows=(USAGE,), has_pod=True, **more):
    """Return the first line about a VPA after one pass."""
    run = Run(settings)
    run.tick(*rows, vpas=[vpa(**more)], pods=[pod()] if has_pod else [])
    return explain_vpa(run.state, *WEB)[0]


def policy(**more):
    return ResourcePolicy(container_policies=(ContainerPolicy(container_name="app", **more),))


def test_a_vpa_whose_pods_do_not_get_the_recommendation_says_why():
    """Its mode, or another VPA of the same pods, is part of the first line; a target that is not there is named."""
    run = Run()
    lost = replace(vpa("lost"), target=Target(problem="no such object"))
    others = [vpa("quiet", mode="Off"), vpa("late", "app=api", mode="Initial")]
    run.tick(USAGE, vpas=[vpa("first"), vpa("second"), *others, lost], pods=[pod()])
    amounts = "It recommends cpu 442m and memory 600Mi for app: nothing holds it back."
    assert {name: explain_vpa(run.state, "shop", name)[0] for name in ("first", "quiet", "late", "lost")} == {
        "first": f"{amounts} VPAs first, second select the same pods: of several on one target only the oldest changes"
        " them.",
        "quiet": f"{amounts} Update mode Off: it only recommends, no pod is changed.",
        "late": "It recommends nothing: no pods match it. Update mode Initial: only new pods get the recommendation.",
        "lost": "It recommends nothing: no such object.",
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "It recommends cpu 442m and memory 600Mi for app: nothing holds it back."),
        (
            {"policy": policy(max_allowed={"cpu": "300m"}, min_allowed={"memory": "1Gi"})},
            (
                "It recommends cpu 300m and memory 1Gi for app: the allowed maximum lowers cpu of app from 442m to 300m,"
                " and minAllowed raises memory of app from 600Mi to 1Gi."
            ),
        ),
        (
            {"left": (LeftResource("web", "cpu"),)},
            "It recommends memory 600Mi for app: cpu of app is left to HorizontalPodAutoscaler web.",
        ),
        ({"policy": policy(mode="Off")}, "It recommends nothing: the policy of app is Off."),
        (
            {"policy": policy(controlled_resources=())},
            "It recommends nothing: its policies control no resource.",
        ),
        ({"rows": (), "has_pod": False}, "It recommends nothing: no pods match it."),
        (
            {"rows": ()},
            (
                "It recommends cpu 25m and memory 250Mi for app: app has no sample of usage yet, so the pod's minimum"
                " stands in."
            ),
        ),
        (
            {"advised": True, "mode": "Off"},
            (
                "It recommends cpu 442m and memory 600Mi for app: nothing holds it back. There is no VPA object: this is"
                " advice, and nothing is written."
            ),
        ),
    ],
)
def test_the_answer_comes_first(more, said):
    """What is recommended for each container, and what makes it another amount than usage does."""
    assert answer_of(**more) == said


def test_what_holds_for_a_time_says_until_when():
    """A kill that is a lower bound for a window names both times."""
    run = Run(Settings(oom_lower_bound=True))
    run.tick(USAGE, vpas=[vpa()], pods=[pod()])
    killed = run.now
    run.tick(ooms=[Oom("shop", "web-1", "app", killed, 1 << 30)])
    assert explain_vpa(run.state, *WEB)[0] == (
        "It recommends cpu 442m and memory 1.2Gi for app: an OOM kill at"
        f" {format_rfc3339(killed)} raises memory of app from 600Mi to 1.2Gi until {format_rfc3339(after(killed, hours(24)))}."
    )


def recommended(container, resource, target):
    more = {"lower": target, "upper": target}
    return VOCABULARY.reason("Recommended", f"shop/web/{container}", resource=resource, target=target, **more)


@pytest.mark.parametrize(
    ("ago", "cpu", "said"),
    [
        (hours(200), "221m", "Since a week ago: cpu of app from 221m to 442m (+100%)."),
        (hours(168), "442m", "Since a week ago: no target has changed."),
        (
            hours(1),
            "500m",
            "Since 2026-03-02T07:00:00Z, the first in the records: cpu of app from 500m to 442m (-12%).",
        ),
        (hours(0), "500m", ""),
    ],
)
def test_what_a_week_has_changed_is_said_with_its_share(ago, cpu, said):
    """The newest of what was said until then counts, and what was said of another time is not taken for a week ago."""
    core = ALGORITHM.core()
    delta = Delta(at=START, samples=samples(START, USAGE), vpas=[vpa()], pods=[pod()])
    core.apply(ALGORITHM.encode(delta), full=False)
    core.decide(START)
    then = before(START, ago)
    past = [
        (then, ()),
        (then, (recommended("app", "cpu", cpu),)),
        (before(then, hours(1)), (recommended("app", "cpu", "1"), recommended("app", "memory", "629145600"))),
    ]
    assert since_last_week(core, "shop/web", START, iter(past)) == said
    assert since_last_week(core, "shop/gone", START, iter(past)) == ""
    assert since_last_week(core, "shop/web", START, iter(())) == ""


def test_a_container_that_is_new_is_named():
    """It had no target a week ago; one that is gone is passed over."""
    core = ALGORITHM.core()
    delta = Delta(at=START, samples=samples(START, USAGE), vpas=[vpa()], pods=[pod()])
    core.apply(ALGORITHM.encode(delta), full=False)
    core.decide(START)
    past = [(before(START, hours(200)), (recommended("old", "cpu", "1"),))]
    said = "Since a week ago: cpu of app is new, memory of app is new."
    assert since_last_week(core, "shop/web", START, iter(past)) == said
