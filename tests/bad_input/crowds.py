"""Crowds: pods that are all of different classes, each kind of crowd in its own way."""

from __future__ import annotations

from kubetide.testing import builders

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def about(name):
    return {"matchLabels": {"app": name}}


def one_of(*names):
    return {"matchExpressions": [{"key": "app", "operator": "In", "values": list(names)}]}


def apart(selector, topology_key=HOSTNAME):
    return {"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": topology_key}]}}


def near(selector, topology_key=ZONE):
    return {"podAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": topology_key}]}}


def spread(selector, topology_key=ZONE):
    rule = {"maxSkew": 1, "topologyKey": topology_key, "whenUnsatisfiable": "DoNotSchedule"}
    return [{**rule, "labelSelector": selector}]


def not_in(value):
    term = {"matchExpressions": [{"key": "shelf", "operator": "NotIn", "values": [value]}]}
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}


KINDS = {
    "sizes": lambda _number, _own: {},
    "tolerations": lambda number, _own: {"tolerations": [{"key": f"k{number}", "operator": "Exists"}]},
    "host ports": lambda number, _own: {"containers": [{"name": "a", "ports": [{"hostPort": number + 1}]}]},
    "node affinity": lambda number, _own: {"affinity": not_in(f"v{number}")},
    "apart from their own": lambda _number, own: {"affinity": apart(own)},
    "apart from two": lambda number, _own: {"affinity": apart(one_of(f"a{number}", f"b{number}"))},
    "near their own": lambda _number, own: {"affinity": near(own)},
    "spread by zone": lambda _number, own: {"topologySpreadConstraints": spread(own)},
    "spread by node": lambda _number, own: {"topologySpreadConstraints": spread(own, HOSTNAME)},
    "half for no node": lambda number, _own: {"nodeSelector": {"shelf": f"v{number}"}} if number % 2 else {},
    "half near nobody": lambda number, _own: (
        {"affinity": near(about(f"nobody-{number}"))} if number % 2 else {}
    ),
}
PLACED = ("sizes", "tolerations", "node affinity", "apart from their own", "near their own", "spread by zone")
"""Kinds of which every pod finds a node."""


def pod(kind, number):
    """Return the body of one pod of a crowd."""
    labels = {"app": f"a{number}", "number": str(number)}
    asked = {"cpu": f"{number % 50 + 1}m", "memory": f"{number + 1}Ki"}
    spec = {
        "containers": [{"name": "a", "resources": {"requests": asked}}],
        **KINDS[kind](number, about(f"a{number}")),
    }
    return {
        "metadata": {"name": f"p{number}", "labels": labels},
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def node(number, **extra):
    """Return the body of a node in one of three zones."""
    name = f"n{number}"
    labels = {ZONE: f"z{number % 3}", HOSTNAME: name}
    made = builders.node(name, cpu="1000", memory="1000Gi", labels=labels, extra=extra)
    made["status"]["allocatable"]["pods"] = "1000"
    return made
