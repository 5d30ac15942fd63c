"""What the API server fills in of the kinds that applications bring beside workloads.

A Service gets no address: nothing here routes to one.

Source: Kubernetes v1.36, the ``defaults.go`` of core/v1 and rbac/v1, and the conversion of Secrets.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from kubetide.objects.base import Json

_RBAC = "rbac.authorization.k8s.io"


def _service(obj: Json) -> Json:
    if not _is_map(obj.get("spec")):
        return obj
    filled: Json = {"type": "ClusterIP", "sessionAffinity": "None"} | _given(obj["spec"])
    if filled["type"] != "ExternalName":
        filled.setdefault("internalTrafficPolicy", "Cluster")
    if filled["type"] in ("NodePort", "LoadBalancer"):
        filled.setdefault("externalTrafficPolicy", "Cluster")
    if isinstance(filled.get("ports"), list):
        filled["ports"] = [_port(port) if _is_map(port) else port for port in filled["ports"]]
    return {**obj, "spec": filled}


def _port(port: Json) -> Json:
    targets = {} if port.get("port") is None else {"targetPort": port["port"]}
    return {"protocol": "TCP", **targets} | _given(port)


def _secret(obj: Json) -> Json:
    """Fill in the type, and move ``stringData`` into ``data``."""
    secret: Json = {"type": "Opaque"} | _given(obj)
    texts: Any = secret.get("stringData")
    data: Any = secret.get("data") or {}
    if not (_is_map(texts) and _is_map(data)):
        return secret
    moved = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
    del secret["stringData"]
    return {**secret, "data": {**data, **moved}}


def _binding(obj: Json) -> Json:
    filled = dict(obj)
    if _is_map(obj.get("roleRef")):
        filled["roleRef"] = {"apiGroup": _RBAC} | _given(obj["roleRef"])
    if isinstance(obj.get("subjects"), list):
        filled["subjects"] = [_subject(one) if _is_map(one) else one for one in obj["subjects"]]
    return filled


def _subject(subject: Json) -> Json:
    if subject.get("kind") not in ("User", "Group"):
        return subject
    return {"apiGroup": _RBAC} | _given(subject)


def _given(obj: Json) -> Json:
    return {name: value for name, value in obj.items() if value is not None}


def _is_map(value: Any) -> bool:
    """Return whether it is a map: nothing of these kinds has been checked against a type."""
    return isinstance(value, dict)


INERT_DEFAULTS: dict[tuple[str, str], Callable[[Json], Json]] = {
    ("", "Service"): _service,
    ("", "Secret"): _secret,
    (_RBAC, "RoleBinding"): _binding,
    (_RBAC, "ClusterRoleBinding"): _binding,
}
