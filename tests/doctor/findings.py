"""What one check of the doctor finds, and the objects that several checks look at."""

from __future__ import annotations

import msgspec
from tests.nodes.frozen import START

from kubetide.doctor import Snapshot, diagnose
from kubetide.objects.hpa import HorizontalPodAutoscaler
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.objects.workload import Deployment
from kubetide.testing import builders


def found(check, **objects):
    """Return what one check finds, and assert that no check fails."""
    everything = diagnose(Snapshot(now=START, **objects))
    assert [one for one in everything if one.object == "the check itself"] == []
    return [one for one in everything if one.check == check]


def hpa(name, target, **fields):
    return msgspec.convert(builders.hpa(name, target, namespace="default", **fields), HorizontalPodAutoscaler)


def pdb(**fields):
    body = builders.pdb("budget", {"app": "web"}, namespace="default", **fields)
    return msgspec.convert(body, PodDisruptionBudget)


def vpa(target, **spec):
    body = {
        "metadata": {"name": "v", "namespace": "default"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, **spec},
    }
    return msgspec.convert(body, VerticalPodAutoscaler)


def without_requests(name, **resources):
    """Return a Deployment whose container has those resources, and no requests."""
    body = builders.deployment(name, namespace="default", replicas=2)
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return msgspec.convert(body, Deployment)
