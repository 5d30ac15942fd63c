"""What ``explain vpa`` says before the numbers: why pods do not get the recommendation."""

from __future__ import annotations

from msgspec.structs import replace
from tests.vertical.recommender.running import Run, pod, vpa

from kubetide.vertical.recommender.explain import explain_vpa
from kubetide.vertical.targets import Target


def test_a_vpa_whose_pods_do_not_get_the_recommendation_says_why():
    """Its mode, or another VPA of the same pods, is the first line; a target that is not there is named."""
    run = Run()
    lost = replace(vpa("lost"), target=Target(problem="no such object"))
    others = [vpa("quiet", mode="Off"), vpa("late", "app=api", mode="Initial")]
    run.tick(("web-1", "app", 380, 1 << 28), vpas=[vpa("first"), vpa("second"), *others, lost], pods=[pod()])
    assert {name: explain_vpa(run.state, "shop", name)[0] for name in ("first", "quiet", "late", "lost")} == {
        "first": "VPAs first, second select the same pods: of several on one target only the oldest changes them",
        "quiet": "update mode Off: it only recommends, no pod is changed",
        "late": "update mode Initial: only new pods get the recommendation",
        "lost": "shop/lost: no such object",
    }
