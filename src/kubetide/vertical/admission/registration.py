"""The MutatingWebhookConfiguration by which the API server finds the admission controller.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/config.go.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from kubetide.objects.base import Json
from kubetide.vertical.admission.settings import Settings

NAME: Final = "vpa-webhook-config"
WEBHOOK: Final = "vpa.k8s.io"
IN_PROCESS: Final = "https://vpa-webhook.in-process"
"""Its URL where an embedded cluster calls it inside of the process."""

_NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def webhook_configuration(
    settings: Settings, bundle: bytes, namespace: str, port: int, labels: Mapping[str, str]
) -> Json:
    """Return the configuration for new pods, and for created or changed VPA objects.

    Args:
        bundle: PEM of the authorities that the server's certificate may be signed by.
        namespace: Of the service ``--webhook-service``.
        port: Where the controller listens: that of a URL for which ``--webhook-port`` says none.
        labels: Of the configuration, as ``read_labels`` returns them.
    """
    metadata: Json = {"name": NAME, **({"labels": labels} if labels else {})}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": metadata,
        "webhooks": [
            {
                "name": WEBHOOK,
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    **_address(settings, namespace, port),
                    "caBundle": base64.b64encode(bundle).decode(),
                },
                "rules": [
                    _rule(("CREATE",), "", ("v1",), "pods"),
                    _rule(("CREATE", "UPDATE"), "autoscaling.k8s.io", ("*",), "verticalpodautoscalers"),
                ],
                "failurePolicy": "Fail" if settings.webhook_failure_policy_fail else "Ignore",
                "sideEffects": "None",
                "timeoutSeconds": settings.webhook_timeout_seconds,
                "namespaceSelector": _namespaces(settings),
            }
        ],
    }


def bundle_patch(bundle: bytes) -> list[Json]:
    """Return the JSON patch that replaces the CA bundle."""
    path = "/webhooks/0/clientConfig/caBundle"
    return [{"op": "add", "path": path, "value": base64.b64encode(bundle).decode()}]


def leads_to_same_server(found: Json, written: Json, *, compare_bundle: bool) -> bool:
    """Return whether one configuration has a webhook of the other's address, and on request of its CA bundle."""
    fields = ("url", "caBundle") if compare_bundle else ("url",)

    def server(config: Json) -> Json:
        service = config.get("service") or {}
        return {name: config.get(name) for name in fields} | {
            "at": (service.get("namespace"), service.get("name"))
        }

    ours = server(written["webhooks"][0]["clientConfig"])
    return any(server(one.get("clientConfig") or {}) == ours for one in found.get("webhooks") or ())


def read_labels(text: str) -> dict[str, str]:
    """Return the labels of ``--webhook-labels``. Raises: ValueError."""
    labels = {}
    for part in filter(None, text.strip('"').split(",")):
        key, colon, value = part.partition(":")
        if not colon or not key.strip():
            raise ValueError(f"webhook-labels: {part!r} is no label: write key:value")
        labels[key.strip()] = value.strip()
    return labels


def _address(settings: Settings, namespace: str, port: int) -> Json:
    if settings.register_by_url:
        host = settings.webhook_address
        url = host if "://" in host else f"https://{host}"
        return {"url": f"{url}:{settings.webhook_port or port}"}
    return {"service": {"name": settings.webhook_service, "namespace": namespace}}


def _namespaces(settings: Settings) -> Json:
    """Select all namespaces but the ignored ones, or the only one whose VPA objects count.

    Upstream never selects the only one, and its empty list of ignored ones holds one empty name.
    """
    if settings.vpa_object_namespace:
        values, operator = [settings.vpa_object_namespace], "In"
    else:
        values, operator = list(settings.ignored_vpa_object_namespaces) or [""], "NotIn"
    return {"matchExpressions": [{"key": _NAMESPACE_LABEL, "operator": operator, "values": values}]}


def _rule(operations: tuple[str, ...], group: str, versions: tuple[str, ...], resource: str) -> Json:
    return {
        "operations": list(operations),
        "apiGroups": [group],
        "apiVersions": list(versions),
        "resources": [resource],
    }
