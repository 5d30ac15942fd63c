"""Autoscalers and time tables of a Deployment, as ``convert`` gets them."""

from __future__ import annotations

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}


def hpa(name="web", target="web", **meta):
    spec = {"scaleTargetRef": {**DEPLOYMENT, "name": target}, "maxReplicas": 9}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name, **meta},
        "spec": spec,
    }


def table(kind, **spec):
    group = {
        "HorizontalPodCronscaler": "autoscaling.cloud.tencent.com/v1",
        "CronHorizontalPodAutoscaler": "autoscaling.alibabacloud.com/v1beta1",
        "CronHPA": "extensions.tkestack.io/v1",
    }
    return {"apiVersion": group[kind], "kind": kind, "metadata": {"name": "hours"}, "spec": spec}


WEB = {**DEPLOYMENT, "name": "web"}
