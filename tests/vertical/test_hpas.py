"""Which resources a VPA leaves to an HPA."""

from __future__ import annotations

import msgspec
import pytest

from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.units.time import Instant
from kubetide.vertical.recommender.facts.hpas import LeftResource, hpa_view, left_by_target, message
from kubetide.vertical.recommender.targets.conditions import LEFT_TO_HPA, conditions_of


def view(*metrics, kind="Deployment", version="apps/v1", name="web"):
    target = {"apiVersion": version, "kind": kind, "name": "web"}
    body = {
        "metadata": {"namespace": "shop", "name": name},
        "spec": {"scaleTargetRef": target, "metrics": list(metrics)},
    }
    return hpa_view(msgspec.convert(body, HorizontalPodAutoscaler))


def resource(name, kind="Utilization"):
    return {"type": "Resource", "resource": {"name": name, "target": {"type": kind}}}


@pytest.mark.parametrize(
    ("metrics", "left"),
    [
        ([resource("cpu")], [("cpu", "")]),
        ([resource("cpu"), resource("memory")], [("cpu", ""), ("memory", "")]),
        ([resource("cpu", "AverageValue")], []),
        ([], [("cpu", "")]),
        (
            [
                {
                    "type": "ContainerResource",
                    "containerResource": {
                        "name": "memory",
                        "container": "app",
                        "target": {"type": "Utilization"},
                    },
                }
            ],
            [("memory", "app")],
        ),
    ],
    ids=["cpu", "both", "absolute", "default", "container"],
)
def test_utilization_is_left_to_the_hpa(metrics, left):
    """Utilization counts, also that which an HPA without metrics gets; an absolute value does not."""
    assert [(one.resource, one.container) for one in view(*metrics).left] == left


def test_a_container_s_resource_is_of_that_container_only():
    """The other containers of the pod get their recommendation."""
    one = LeftResource("web", "cpu", "app")
    assert one.concerns("app", "cpu")
    assert not one.concerns("log", "cpu")
    assert not one.concerns("app", "memory")


def test_hpas_are_found_by_target_whatever_its_version():
    """Namespace, group, kind and name count; what scales something else does not."""
    found = left_by_target([view(resource("cpu")), view(resource("cpu"), kind="StatefulSet", name="db")])
    assert found["shop", "apps", "Deployment", "web"] == (LeftResource("web", "cpu"),)
    assert set(found) == {("shop", "apps", "Deployment", "web"), ("shop", "apps", "StatefulSet", "web")}


def test_the_condition_comes_and_goes():
    """The condition names the HPA and the resource, and is removed once there is no conflict."""
    said = message([LeftResource("web", "cpu")])
    begun = conditions_of((), problem="", pods=True, provided=True, now=Instant(0), left=said)
    [one] = [one for one in begun if one.type == LEFT_TO_HPA]
    assert (one.status, one.reason) == ("True", "HPAScalesOnUtilization")
    assert "HorizontalPodAutoscaler web scales on the utilization of cpu" in one.message
    ended = conditions_of(begun, problem="", pods=True, provided=True, now=Instant(0))
    assert LEFT_TO_HPA not in {one.type for one in ended}
