"""An HPA that flips under a constant load is named, and the option calms it."""

from __future__ import annotations

import msgspec
import pytest
from tests.simulate.worlds import MANIFEST, small

from kubetide.simulate.run import run_simulation
from kubetide.simulate.scenarios.scenario import DailySpec, LoadSpec, PodTimes

BEHAVIOR = """
  behavior:
    scaleUp: {tolerance: "0"}
    scaleDown: {stabilizationWindowSeconds: %s, tolerance: "0"}
"""


def turns(tmp_path, window, annotation=""):
    """A load of 61 % of one pod with a target of 60 %: two pods use 30 % each by upstream's whole percents."""
    manifest = MANIFEST.replace("minReplicas: 2", "minReplicas: 1").replace("replicas: 2\n", "replicas: 1\n")
    manifest = manifest.replace(
        "metadata: {name: web}\nspec:\n  scaleTarget",
        f"metadata: {{name: web{annotation}}}\nspec:\n  scaleTarget",
    )
    scenario = small(duration="30m")
    load = LoadSpec(daily=DailySpec(low=12.3, peak=12.3, noise=0))
    service = msgspec.structs.replace(scenario.services[0], load=load)
    scenario = msgspec.structs.replace(
        scenario,
        services=(service,),
        manifests=(manifest + BEHAVIOR.lstrip("\n") % window,),
        pods=PodTimes(image_pull="20s", start="5s", ready="20s"),
    )
    result = run_simulation(scenario, base=tmp_path, out=tmp_path, seed=1, warn=pytest.fail)
    return result.summary.services[0].rescales, result.summary.notices


def test_a_window_of_zero_may_flip_at_every_sync(tmp_path):
    """The run names the HPA and the way out."""
    rescales, [notice] = turns(tmp_path, 0)
    assert rescales > 20
    assert "HorizontalPodAutoscaler default/web: changed direction" in notice
    assert (
        'its behavior.scaleDown.stabilizationWindowSeconds is 0: raise it, or annotate horizontal.kubetide.io/hold-until-ready: "true"'
        in notice
    )


def test_the_option_holds_until_pods_are_ready(tmp_path):
    """With the option it turns at most half as often."""
    without, _ = turns(tmp_path, 0)
    held, _ = turns(tmp_path, 0, ', annotations: {horizontal.kubetide.io/hold-until-ready: "true"}')
    assert held <= without / 2


def test_a_window_calms_too(tmp_path):
    """With upstream's window there is no message."""
    rescales, notices = turns(tmp_path, 300)
    assert (rescales <= 2, notices) == (True, ())
