"""What the API server fills in of claims for devices.

Source: Kubernetes v1.36, pkg/apis/resource/v1/defaults.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kubetide.objects.base import Json


def resource_claim_defaults(obj: Json) -> Json:
    return {**obj, "spec": _spec(obj.get("spec"))}


def resource_claim_template_defaults(obj: Json) -> Json:
    template = obj.get("spec") or {}
    return {**obj, "spec": {"metadata": {}, **template, "spec": _spec(template.get("spec"))}}


def _spec(spec: Json | None) -> Json:
    spec = spec or {}
    devices = spec.get("devices") or {}
    if not devices.get("requests"):
        return spec
    return {**spec, "devices": {**devices, "requests": [_request(one) for one in devices["requests"]]}}


def _request(request: Json) -> Json:
    if request.get("exactly") is not None:
        request = {**request, "exactly": _counted(request["exactly"])}
    if request.get("firstAvailable"):
        request = {**request, "firstAvailable": [_counted(one) for one in request["firstAvailable"]]}
    return request


def _counted(request: Json) -> Json:
    mode = request.get("allocationMode") or "ExactCount"
    counted = {**request, "allocationMode": mode}
    if mode == "ExactCount" and not request.get("count"):
        counted["count"] = 1
    return counted
