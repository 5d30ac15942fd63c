"""Services, ingresses, secrets, roles and quotas: what applications bring beside workloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubetide.embedded.apiserver.tables.column import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Column,
    Columns,
    age,
    at,
    labels_text,
    selector_text,
    wide,
)
from kubetide.objects.base import Json
from kubetide.units.time import Instant

_MOST_HOSTS = 3
_LOAD_BALANCER_WIDTH = 16


def _service(obj: Json, now: Instant) -> list[Any]:
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or [spec.get("clusterIP") or NONE]
    return [
        obj["metadata"]["name"],
        spec.get("type") or "",
        addresses[0],
        _external_addresses(obj),
        ",".join(_port(port) for port in _maps(spec.get("ports"))) or NONE,
        age(obj, now),
        labels_text(spec.get("selector")),
    ]


def _external_addresses(obj: Json) -> str:
    spec = obj.get("spec") or {}
    own = list(spec.get("externalIPs") or ())
    if spec.get("type") == "ExternalName":
        return str(spec.get("externalName") or "")
    if spec.get("type") == "LoadBalancer":
        return ",".join([*filter(None, [_load_balancer(obj)]), *own]) or "<pending>"
    return (",".join(own) or NONE) if spec.get("type") in {"ClusterIP", "NodePort"} else UNKNOWN


def _load_balancer(obj: Json) -> str:
    found = {
        one.get("ip") or one.get("hostname") for one in _maps(at(obj, "status", "loadBalancer", "ingress"))
    }
    text = ",".join(sorted(filter(None, found)))
    return text if len(text) <= _LOAD_BALANCER_WIDTH else f"{text[: _LOAD_BALANCER_WIDTH - 3]}..."


def _port(port: Mapping[str, Any]) -> str:
    number = f"{port.get('port')}:{port['nodePort']}" if port.get("nodePort") else str(port.get("port"))
    return f"{number}/{port.get('protocol') or 'TCP'}"


def _ingress(obj: Json, now: Instant) -> list[Any]:
    spec = obj.get("spec") or {}
    rules = list(_maps(spec.get("rules")))
    hosts = [rule["host"] for rule in rules[:_MOST_HOSTS] if rule.get("host")]
    more = f" + {len(rules) - _MOST_HOSTS} more..." if len(rules) > _MOST_HOSTS and hosts else ""
    return [
        obj["metadata"]["name"],
        spec.get("ingressClassName") or NONE,
        f"{','.join(hosts) or '*'}{more}",
        _load_balancer(obj),
        "80, 443" if spec.get("tls") else "80",
        age(obj, now),
    ]


def _ingress_class(obj: Json, now: Instant) -> list[Any]:
    name = obj["metadata"]["name"]
    is_default = at(obj, "metadata", "annotations", "ingressclass.kubernetes.io/is-default-class") == "true"
    parameters = at(obj, "spec", "parameters")
    shown = NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind')}{group}/{parameters.get('name')}"
    return [
        f"{name} (default)" if is_default else name,
        at(obj, "spec", "controller") or "",
        shown,
        age(obj, now),
    ]


def _secret(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], obj.get("type") or "", len(obj.get("data") or {}), age(obj, now)]


def _role(obj: Json, _now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], at(obj, "metadata", "creationTimestamp") or ""]


def _binding(obj: Json, now: Instant) -> list[Any]:
    role, subjects = obj.get("roleRef") or {}, list(_maps(obj.get("subjects")))
    accounts = [
        f"{one.get('namespace')}/{one.get('name')}" for one in subjects if one.get("kind") == "ServiceAccount"
    ]
    users, groups = (
        [str(one.get("name")) for one in subjects if one.get("kind") == kind] for kind in ("User", "Group")
    )
    return [
        obj["metadata"]["name"],
        f"{role.get('kind')}/{role.get('name')}",
        age(obj, now),
        *(", ".join(names) for names in (users, groups, accounts)),
    ]


def _quota(obj: Json, now: Instant) -> list[Any]:
    hard, used = at(obj, "status", "hard") or {}, at(obj, "status", "used") or {}
    cells: dict[bool, list[str]] = {False: [], True: []}
    for name in sorted(hard):
        cells[name.startswith("limits.")].append(f"{name}: {used.get(name, 0)}/{hard[name]}")
    return [obj["metadata"]["name"], ", ".join(cells[False]), ", ".join(cells[True]), age(obj, now)]


def _network_policy(obj: Json, now: Instant) -> list[Any]:
    return [obj["metadata"]["name"], selector_text(at(obj, "spec", "podSelector")), age(obj, now)]


def _maps(value: Any) -> Iterable[Mapping[str, Any]]:
    """Yield the maps of a list; nothing here has been checked against a schema."""
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else ()


_RBAC = "rbac.authorization.k8s.io"
_ROLES = Columns((NAME, Column("Created At", "date")), _role)
_BINDINGS = Columns(
    (NAME, Column("Role"), AGE, wide("Users"), wide("Groups"), wide("ServiceAccounts")), _binding
)

INERT_TABLES = {
    "services": Columns(
        (
            NAME,
            Column("Type"),
            Column("Cluster-IP"),
            Column("External-IP"),
            Column("Port(s)"),
            AGE,
            wide("Selector"),
        ),
        _service,
    ),
    "secrets": Columns((NAME, Column("Type"), Column("Data"), AGE), _secret),
    "resourcequotas": Columns((NAME, Column("Request"), Column("Limit"), AGE), _quota),
    "ingresses.networking.k8s.io": Columns(
        (NAME, Column("Class"), Column("Hosts"), Column("Address"), Column("Ports"), AGE), _ingress
    ),
    "ingressclasses.networking.k8s.io": Columns(
        (NAME, Column("Controller"), Column("Parameters"), AGE), _ingress_class
    ),
    "networkpolicies.networking.k8s.io": Columns((NAME, Column("Pod-Selector"), AGE), _network_policy),
    f"roles.{_RBAC}": _ROLES,
    f"clusterroles.{_RBAC}": _ROLES,
    f"rolebindings.{_RBAC}": _BINDINGS,
    f"clusterrolebindings.{_RBAC}": _BINDINGS,
}
