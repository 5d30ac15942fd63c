"""What ``explain update`` says of pods that the last loop had no reason for, and of VPAs that apply nothing."""

from __future__ import annotations

import pytest
from tests.vertical.making import NOW, pod, state, vpa

from kubetide.vertical.updater.core import UpdaterCore
from kubetide.vertical.updater.decide import decide
from kubetide.vertical.updater.explaining import EXPLAINING
from kubetide.vertical.updater.overview import OVERVIEW
from kubetide.vertical.updater.reasons import reason


def explained(pods, vpas):
    """Return the lines about the first pod after a loop."""
    core = UpdaterCore()
    core.state = state(pods, vpas)
    core.reasons = tuple(decide(core.state, NOW)[1].reasons)
    [explainer] = EXPLAINING.explainers
    return explainer.lines(core, "default/web-0", NOW, "")


@pytest.mark.parametrize(
    ("vpas", "words"),
    [
        ([vpa("Off")], "default/web-0: VPA default/web selects it; update mode Off: it only recommends, no pod is changed"),
        ([vpa("Initial")], "selects it; update mode Initial: only new pods get the recommendation"),
        ([vpa("InPlace")], "default/web: update mode InPlace needs the feature gate InPlace"),
        ([vpa(target=("Deployment", "other"))], "default/web-0: no VPA selects it"),
        ([vpa("Off"), vpa("Recreate", name="zeta")], "default/web-0: its requests are to change"),
    ],
    ids=["Off", "Initial", "InPlace", "another target", "one of two"],
)  # fmt: skip
def test_a_pod_names_the_vpa_and_its_mode(vpas, words):
    """That a VPA selects the pod is said also where its mode leaves the pod alone."""
    pods = [pod(f"web-{number}") for number in range(3)]
    assert any(words in line for line in explained(pods, vpas))


def test_requirements_that_are_not_met_are_named():
    """The pod is told which change its VPA waits for."""
    requirements = [{"resources": ["cpu", "memory"], "changeRequirement": "TargetLowerThanRequests"}]
    policy = {"updateMode": "Recreate", "evictionRequirements": requirements}
    lines = explained([pod(f"web-{number}") for number in range(3)], [vpa(updatePolicy=policy)])
    assert lines[-1].endswith(
        "the VPA's evictionRequirements are not met: cpu or memory TargetLowerThanRequests"
    )


def test_what_is_to_change_is_said_with_its_numbers():
    """A reader sees from what to what each request goes, and the bounds that it is held against."""
    pods = [pod(f"web-{number}", cpu="500m", memory="1Gi") for number in range(3)]
    lines = explained(pods, [vpa()])
    assert lines[0] == (
        "default/web-0: its requests are to change: main memory from 1Gi to 500Mi (bounds 300Mi to 800Mi)"
    )


def test_pods_that_wait_for_the_same_are_one_row_of_the_status():
    """Their numbers differ, and what they wait for does not: advice withholds the change of all of them."""
    core = UpdaterCore()
    core.state = state([pod(f"web-{number}", cpu=f"{number + 1}00m") for number in range(2)], [vpa()])
    core.reasons = tuple(
        reason("Queued", f"default/web-{number}", vpa="default/web", detail=str(number))
        for number in range(2)
    )
    [table] = OVERVIEW.tables(core, NOW)
    assert [row[:3] for row in table.rows] == [("default/web", 2, "its requests are to change")]
