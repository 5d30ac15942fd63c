"""Nodes and pods drawn from a seed: all that kube-scheduler's filters look at, in mixtures that a user could write.

Names of labels and apps are few, so that pods meet.
"""

from __future__ import annotations

from random import Random
from typing import Any

from kubetide.testing import builders

Json = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
HOSTNAME = "kubernetes.io/hostname"
ZONES = ("z-a", "z-b", "z-c")
NAMESPACES = {"shop": {"env": "prod"}, "lab": {"env": "test"}, "yard": {}}
APPS = ("web", "api", "cart", "mail", "pay", "log")
GPU = "example.com/gpu"
CHANGE = "test/change"
"""Label that counts the changes of a node."""

_TOPOLOGIES = (HOSTNAME, ZONE, "rack")
_DEDICATED = ("batch", "build")
_TAINTS = (
    {"key": "spot", "value": "yes", "effect": "NoExecute"},
    {"key": "old", "effect": "PreferNoSchedule"},
)


def node(rng: Random, index: int) -> Json:
    """Return a node: mostly in a zone, some with taints, one in twenty cordoned."""
    name = f"n{index:03}"
    labels = {"disk": rng.choice(("ssd", "hdd")), "gen": str(rng.randint(1, 9)), "rack": f"r{index % 12}"}
    if rng.random() < 0.92:
        labels |= {ZONE: rng.choice(ZONES), REGION: "here"}
    if rng.random() < 0.1:
        del labels["rack"]
    size = {
        "cpu": rng.choice(("1", "2", "2", "4", "4", "7500m")),
        "memory": rng.choice(("2Gi", "4Gi", "8Gi", "16Gi", "32Gi")),
        "pods": rng.choice(("6", "10", "20", "110")),
        "ephemeral-storage": rng.choice(("10Gi", "50Gi")),
    }
    if rng.random() < 0.2:
        size[GPU] = rng.choice(("1", "4"))
    if rng.random() < 0.2:
        size["hugepages-2Mi"] = "64Mi"
    spec: Json = {"taints": [dict(one) for one in _TAINTS if rng.random() < 0.08]}
    if rng.random() < 0.15:
        spec["taints"].append(_dedicated(rng))
    if rng.random() < 0.05:
        spec["unschedulable"] = True
    extra = {"spec": spec, "status": {"capacity": size, "allocatable": size}}
    return builders.node(name, labels=labels, extra=extra)


def pod(rng: Random, index: int) -> Json:
    """Return a pod without a volume; its namespace is in its metadata."""
    app = rng.choice(APPS)
    body = builders.pod(f"p{index:05}", labels={"app": app, "tier": rng.choice(("x", "y"))})
    body["metadata"]["namespace"] = rng.choice(tuple(NAMESPACES))
    spec: Json = {
        "containers": _containers(rng),
        "terminationGracePeriodSeconds": 0,
        "tolerations": _tolerations(rng),
    }
    if rng.random() < 0.15:
        spec["initContainers"] = _init_containers(rng)
    elif rng.random() < 0.05:
        # At least what the containers request together.
        spec["containers"] = spec["containers"][:1]
        spec["resources"] = {"requests": {"cpu": "2500m", "memory": "6Gi"}}
    if rng.random() < 0.15:
        spec["nodeSelector"] = rng.choice(
            ({"disk": "ssd"}, {"disk": "hdd", ZONE: "z-a"}, {"rack": "r3"}, {"disk": "tape"}, {ZONE: "z-b"})
        )
    affinity: Json = {}
    if rng.random() < 0.2:
        affinity["nodeAffinity"] = _required(
            {"nodeSelectorTerms": [_node_term(rng) for _ in range(rng.randint(1, 2))]}
        )
    if rng.random() < 0.12:
        affinity["podAffinity"] = _required([_pod_term(rng, app) for _ in range(rng.choice((1, 1, 2)))])
    if rng.random() < 0.15:
        affinity["podAntiAffinity"] = _required([_pod_term(rng, app) for _ in range(rng.choice((1, 1, 2)))])
    if affinity:
        spec["affinity"] = affinity
    if rng.random() < 0.2:
        topologies = rng.sample(_TOPOLOGIES, rng.choice((1, 1, 2)))
        spec["topologySpreadConstraints"] = [_spread(rng, app, one) for one in topologies]
    if rng.random() < 0.1:
        spec["volumes"] = [_disk(rng)]
    body["spec"] = spec
    return body


def changed_node(rng: Random, known: Json) -> Json:
    """Return a merge patch that changes what scheduling sees of a node."""
    labels = known["metadata"]["labels"]
    drawn = rng.randrange(5)
    if drawn == 0:
        return {"spec": {"unschedulable": None if known["spec"].get("unschedulable") else True}}
    if drawn == 1:
        others = [one for one in known["spec"].get("taints") or () if one["key"] != "dedicated"]
        return {"spec": {"taints": [*others, _dedicated(rng)] if rng.random() < 0.6 else others}}
    if drawn == 2:
        return {"metadata": {"labels": {ZONE: rng.choice((*ZONES, None))}}}
    if drawn == 3:
        return {"metadata": {"labels": {"disk": "hdd" if labels.get("disk") == "ssd" else "ssd"}}}
    return {"metadata": {"labels": {"rack": rng.choice((f"r{rng.randrange(12)}", None))}}}


def _dedicated(rng: Random) -> Json:
    return {"key": "dedicated", "value": rng.choice(_DEDICATED), "effect": "NoSchedule"}


def _containers(rng: Random) -> list[Json]:
    containers = []
    for number in range(rng.choice((1, 1, 1, 2))):
        requests = {}
        if rng.random() < 0.9:
            requests["cpu"] = rng.choice(("10m", "100m", "250m", "500m", "1", "2", "0.1"))
        if rng.random() < 0.85:
            requests["memory"] = rng.choice(("32Mi", "128Mi", "500M", "1Gi", "2.5Gi", "6Gi"))
        if rng.random() < 0.1:
            requests["ephemeral-storage"] = rng.choice(("1Gi", "8Gi", "20Gi"))
        limits = {}
        if rng.random() < 0.06:
            limits[GPU] = rng.choice(("1", "1", "2"))
        if rng.random() < 0.05 and "cpu" in requests:
            limits["hugepages-2Mi"] = rng.choice(("8Mi", "32Mi"))
        one: Json = {
            "name": f"c{number}",
            "image": "registry.test/app:1",
            "resources": {"requests": {**requests, **limits}, "limits": limits},
        }
        if rng.random() < 0.15:
            one["ports"] = [_port(rng, number)]
        containers.append(one)
    return containers


def _port(rng: Random, number: int) -> Json:
    # A port of its own for each container: one pod may not claim a port twice.
    port: Json = {"containerPort": 80, "hostPort": 8000 + 10 * number + rng.randrange(3)}
    if rng.random() < 0.3:
        port["protocol"] = "UDP"
    if rng.random() < 0.3:
        port["hostIP"] = rng.choice(("127.0.0.1", "10.0.0.7", "0.0.0.0"))
    return port


def _init_containers(rng: Random) -> list[Json]:
    one: Json = {
        "name": "first",
        "image": "registry.test/app:1",
        "resources": {"requests": {"cpu": rng.choice(("200m", "3")), "memory": rng.choice(("64Mi", "4Gi"))}},
    }
    if rng.random() < 0.4:
        one["restartPolicy"] = "Always"
        if rng.random() < 0.3:
            one["ports"] = [_port(rng, 5)]
    last = {"name": "second", "image": "registry.test/app:1", "resources": {"requests": {"cpu": "1500m"}}}
    return [one, last] if rng.random() < 0.4 else [one]


def _tolerations(rng: Random) -> list[Json]:
    choices: tuple[Json, ...] = (
        {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"},
        {"key": "dedicated", "operator": "Exists"},
        {"key": "spot", "operator": "Exists", "effect": "NoExecute"},
        {"key": "spot", "value": "no"},
        {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
        {"operator": "Exists", "effect": "NoSchedule"},
        {"operator": "Exists"},
    )
    return [dict(one) for one in choices if rng.random() < 0.07]


def _required(given: Any) -> Json:
    return {"requiredDuringSchedulingIgnoredDuringExecution": given}


def _node_term(rng: Random) -> Json:
    expressions: list[Json] = [
        {"key": ZONE, "operator": "In", "values": rng.sample(ZONES, 2)},
        {"key": ZONE, "operator": "NotIn", "values": [rng.choice(ZONES)]},
        {"key": "gen", "operator": "Gt", "values": [str(rng.randint(0, 8))]},
        {"key": "gen", "operator": "Lt", "values": [str(rng.randint(2, 9))]},
        {"key": "rack", "operator": "Exists"},
        {"key": "rack", "operator": "DoesNotExist"},
        {"key": "disk", "operator": "In", "values": ["ssd", "nvme"]},
    ]
    term: Json = {}
    if rng.random() < 0.85:
        term["matchExpressions"] = rng.sample(expressions, rng.choice((1, 1, 2)))
    if rng.random() < 0.2 or not term:
        operator = rng.choice(("In", "In", "NotIn"))
        name = f"n{rng.randrange(110):03}"
        term["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [name]}]
    return term


def prefer(rng: Random, spec: Json, app: str) -> None:
    """Give a pod preferences, which only scoring reads: for nodes, and about other pods."""
    name = "preferredDuringSchedulingIgnoredDuringExecution"
    affinity: Json = spec.setdefault("affinity", {})
    if rng.random() < 0.6:
        terms = [{"weight": rng.randint(1, 100), "preference": _node_term(rng)} for _ in range(2)]
        affinity.setdefault("nodeAffinity", {})[name] = terms
    for kind in ("podAffinity", "podAntiAffinity"):
        if rng.random() < 0.4:
            term = {"weight": rng.randint(1, 100), "podAffinityTerm": _pod_term(rng, app)}
            affinity.setdefault(kind, {})[name] = [term]


def _selector(rng: Random, app: str) -> Json:
    return rng.choice(
        (
            {"matchLabels": {"app": app}},
            {"matchLabels": {"app": rng.choice(APPS)}},
            {"matchLabels": {"app": rng.choice(APPS), "tier": rng.choice(("x", "y"))}},
            {"matchExpressions": [{"key": "app", "operator": "In", "values": rng.sample(APPS, 2)}]},
            {
                "matchExpressions": [
                    {"key": "tier", "operator": "NotIn", "values": ["x"]},
                    {"key": "app", "operator": "In", "values": [app]},
                ]
            },
        )
    )


def _pod_term(rng: Random, app: str) -> Json:
    term: Json = {"topologyKey": rng.choice(_TOPOLOGIES), "labelSelector": _selector(rng, app)}
    drawn = rng.randrange(10)
    if drawn == 0:
        term["namespaces"] = rng.sample(tuple(NAMESPACES), 2)
    elif drawn == 1:
        term["namespaceSelector"] = rng.choice(
            (
                {},
                {"matchLabels": {"env": "prod"}},
                {"matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]},
            )
        )
    elif drawn in {2, 3}:
        key = "matchLabelKeys" if drawn == 2 else "mismatchLabelKeys"
        term |= {"labelSelector": {"matchLabels": {"app": app}}, key: ["tier"]}
    elif drawn == 4:
        del term["labelSelector"]
    return term


def _spread(rng: Random, app: str, topology: str) -> Json:
    constraint: Json = {
        "topologyKey": topology,
        "maxSkew": rng.choice((1, 1, 2, 4)),
        "whenUnsatisfiable": rng.choice(
            ("DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")
        ),
        "labelSelector": _selector(rng, app) if rng.random() < 0.9 else {},
    }
    if constraint["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.2:
        constraint["minDomains"] = rng.choice((2, 3, 4))
    if rng.random() < 0.2:
        constraint["nodeAffinityPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.3:
        constraint["nodeTaintsPolicy"] = rng.choice(("Honor", "Ignore"))
    if rng.random() < 0.1:
        constraint |= {"labelSelector": {"matchLabels": {"app": app}}, "matchLabelKeys": ["tier"]}
    return constraint


def _disk(rng: Random) -> Json:
    name = f"d{rng.randrange(4)}"
    return rng.choice(
        (
            {"name": "disk", "gcePersistentDisk": {"pdName": name, "readOnly": rng.random() < 0.5}},
            {"name": "disk", "awsElasticBlockStore": {"volumeID": name}},
            {
                "name": "disk",
                "iscsi": {
                    "targetPortal": "10.0.0.1",
                    "iqn": f"iqn.2020-01.test:{name}",
                    "lun": 0,
                    "readOnly": rng.random() < 0.5,
                },
            },
            {
                "name": "disk",
                "rbd": {
                    "monitors": rng.sample(("m1", "m2", "m3"), 2),
                    "pool": "p",
                    "image": name,
                    "readOnly": rng.random() < 0.5,
                },
            },
        )
    )
