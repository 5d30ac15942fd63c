"""The filters as plain Python over objects, one node at a time: what the columns must agree with.

Amounts are written ``<n>m`` for cpu and as plain numbers for the rest, so that reading them needs
nothing of the code under test.
"""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from kubetide.objects.meta import ObjectMeta
from kubetide.objects.node import Node, NodeSpec, NodeStatus, Taint
from kubetide.objects.pod import (
    Affinity,
    Container,
    ContainerPort,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    ResourceRequirements,
    Toleration,
)

NAMES = ("n0", "n1", "n2", "n3", "n4", "n5")
ORDER = ("cpu", "memory", "ephemeral-storage")


# ── Objects ──


def make_node(name, *, labels=None, taints=(), unschedulable=False, **allocatable):
    offered = {"cpu": "4000m", "memory": "1000", "pods": "10", **allocatable}
    return Node(
        metadata=ObjectMeta(name=name, labels={"kubernetes.io/hostname": name, **(labels or {})}),
        spec=NodeSpec(taints=tuple(taints), unschedulable=unschedulable),
        status=NodeStatus(
            allocatable={key: str(value) for key, value in offered.items() if value is not None}
        ),
    )


def make_container(requests=None, *, ports=(), restart_policy=None, name="c"):
    return Container(
        name=name,
        resources=ResourceRequirements(requests=requests),
        ports=tuple(ports),
        restart_policy=restart_policy,
    )


def make_pod(name="p", requests=None, *, namespace="default", **spec):
    labels = spec.pop("labels", None)
    owners = spec.pop("owner_references", None)
    spec.setdefault("containers", (make_container(requests),))
    return Pod(
        metadata=ObjectMeta(
            name=name, namespace=namespace, uid=f"uid-{name}", labels=labels, owner_references=owners
        ),
        spec=PodSpec(**spec),
    )


def required(*terms):
    selector = NodeSelector(node_selector_terms=tuple(terms))
    return Affinity(node_affinity=NodeAffinity(required_during_scheduling_ignored_during_execution=selector))


def term(*requirements, fields=()):
    return NodeSelectorTerm(match_expressions=tuple(requirements), match_fields=tuple(fields))


def requirement(key, operator, *values):
    return NodeSelectorRequirement(key=key, operator=operator, values=values)


# ── Random objects ──

_amounts = st.fixed_dictionaries(
    {},
    optional={
        "cpu": st.integers(0, 3000).map("{}m".format),
        "memory": st.integers(0, 900).map(str),
        "example.com/gpu": st.integers(0, 2).map(str),
        "unknown": st.just("5"),
    },
)
_ports = st.lists(
    st.builds(
        ContainerPort,
        host_port=st.sampled_from((0, 80, 81)),
        host_ip=st.sampled_from(("", "0.0.0.0", "10.0.0.1", "10.0.0.2")),
        protocol=st.sampled_from(("", "TCP", "UDP")),
    ),
    max_size=2,
).map(tuple)
_containers = st.builds(
    lambda requests, ports, restart: make_container(requests, ports=ports, restart_policy=restart),
    _amounts,
    _ports,
    st.sampled_from((None, "Always")),
)
_requirements = st.one_of(
    st.builds(
        lambda key, operator, values: requirement(key, operator, *values),
        st.sampled_from(("zone", "gen", "kubernetes.io/hostname", "-bad key")),
        st.sampled_from(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Bogus")),
        st.lists(st.sampled_from(("a", "b", "1", "2", "n1", "n2")), max_size=2),
    ),
    st.builds(
        lambda operator, value: requirement("gen", operator, value),
        st.sampled_from(("Gt", "Lt")),
        st.sampled_from(("1", "2")),
    ),
    st.just(requirement("zone", "In", "a", "b")),
)
_fields = st.builds(
    lambda key, operator, values: requirement(key, operator, *values),
    st.sampled_from(("metadata.name", "metadata.name", "spec.other")),
    st.sampled_from(("In", "NotIn")),
    st.lists(st.sampled_from((*NAMES[:3], "")), min_size=1, max_size=2),
)
_terms = st.builds(
    lambda labels, fields: term(*labels, fields=fields),
    st.lists(_requirements, max_size=2),
    st.lists(_fields, max_size=1),
)
_affinities = st.one_of(
    st.none(), st.none(), st.lists(_terms, max_size=2).map(lambda terms: required(*terms))
)
_taints = st.builds(
    Taint,
    key=st.sampled_from(("k", "node.kubernetes.io/unschedulable")),
    value=st.sampled_from(("", "v")),
    effect=st.sampled_from(("NoSchedule", "NoExecute", "PreferNoSchedule")),
)
_tolerations = st.builds(
    Toleration,
    key=st.sampled_from(("", "k", "node.kubernetes.io/unschedulable")),
    operator=st.sampled_from(("", "Equal", "Exists", "Gt")),
    value=st.sampled_from(("", "v")),
    effect=st.sampled_from(("", "NoSchedule", "NoExecute")),
)

nodes = st.builds(
    lambda name, labels, taints, cordoned, offered: make_node(
        name, labels=labels, taints=taints, unschedulable=cordoned, **offered
    ),
    st.sampled_from(NAMES),
    st.fixed_dictionaries(
        {}, optional={"zone": st.sampled_from(("a", "b")), "gen": st.sampled_from(("1", "2", "x"))}
    ),
    st.lists(_taints, max_size=2),
    st.sampled_from((False, False, False, True)),
    st.fixed_dictionaries(
        {
            "cpu": st.integers(0, 8000).map("{}m".format),
            "memory": st.one_of(st.none(), st.integers(0, 2000)),
            "pods": st.integers(0, 4),
        },
        optional={"example.com/gpu": st.integers(0, 3)},
    ),
)


def pods(names=("p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7")):
    return st.builds(
        lambda name, spec: make_pod(name, **spec),
        st.sampled_from(names),
        st.fixed_dictionaries(
            {
                "containers": st.lists(_containers, max_size=2).map(tuple),
                "init_containers": st.lists(_containers, max_size=2).map(tuple),
                "overhead": st.one_of(st.none(), st.just({"cpu": "100m"})),
                "node_selector": st.one_of(
                    st.none(), st.none(), st.just({"zone": "a"}), st.just({"kubernetes.io/hostname": "n1"})
                ),
                "affinity": _affinities,
                "tolerations": st.lists(_tolerations, max_size=2).map(tuple),
            }
        ),
    )


# ── Plain rules ──


def amount(text):
    return int(str(text).removesuffix("m"))


def requests_of(pod):
    totals = {}
    for containers, sidecars_only in ((pod.spec.containers, False), (pod.spec.init_containers, True)):
        for one in containers or ():
            if not sidecars_only or one.restart_policy == "Always":
                for key, text in (one.resources.requests or {}).items():
                    totals[key] = totals.get(key, 0) + amount(text)
    for position, one in enumerate(pod.spec.init_containers or ()):
        before = [x for x in pod.spec.init_containers[:position] if x.restart_policy == "Always"]
        peak = {}
        for running in (*before, one):
            for key, text in (running.resources.requests or {}).items():
                peak[key] = peak.get(key, 0) + amount(text)
        totals = {key: max(totals.get(key, 0), peak.get(key, 0)) for key in {**totals, **peak}}
    for key, text in (pod.spec.overhead or {}).items():
        totals[key] = totals.get(key, 0) + amount(text)
    return {key: value for key, value in totals.items() if key in ORDER or "/" in key}


def ports_of(pod):
    holders = [*(pod.spec.containers or ())]
    holders += [one for one in pod.spec.init_containers or () if one.restart_policy == "Always"]
    return [
        (port.protocol or "TCP", port.host_port, port.host_ip or "0.0.0.0")
        for one in holders
        for port in one.ports or ()
        if port.host_port
    ]


def tolerated(pod, taint):
    return any(
        one.effect in {"", taint.effect}
        and one.key in {"", taint.key}
        and (one.operator == "Exists" or (one.operator in {"", "Equal"} and one.value == taint.value))
        for one in pod.spec.tolerations or ()
    )


def label_holds(one, value):
    values = one.values or ()
    if one.operator == "In":
        return value in values
    if one.operator == "NotIn":
        return value not in values
    if one.operator == "Exists":
        return value is not None
    if one.operator == "DoesNotExist":
        return value is None
    if value is None or not value.isdigit():
        return False
    return int(value) > int(values[0]) if one.operator == "Gt" else int(value) < int(values[0])


def well_formed(one, *, field):
    values = one.values or ()
    if field:
        return one.operator in {"In", "NotIn"} and len(values) == 1
    if one.key == "-bad key":
        return False
    if one.operator in {"In", "NotIn"}:
        return bool(values)
    if one.operator in {"Exists", "DoesNotExist"}:
        return not values
    return one.operator in {"Gt", "Lt"} and len(values) == 1 and values[0].isdigit()


def term_holds(one, node):
    labels, fields = one.match_expressions or (), one.match_fields or ()
    if not labels and not fields:
        return False
    if not all(well_formed(x, field=False) for x in labels):
        return False
    if not all(well_formed(x, field=True) for x in fields):
        return False
    name = node.metadata.name
    return all(label_holds(x, node.metadata.labels.get(x.key)) for x in labels) and all(
        label_holds(x, name if x.key == "metadata.name" else "") for x in fields
    )


def terms_of(pod):
    affinity = pod.spec.affinity
    if affinity is None:
        return None
    return affinity.node_affinity.required_during_scheduling_ignored_during_execution.node_selector_terms


def named_nodes(pod):
    """The names that PreFilter restricts the pod to, or None."""
    union = set()
    for one in terms_of(pod) or ():
        sets = [
            set(x.values or ())
            for x in one.match_fields or ()
            if x.key == "metadata.name" and x.operator == "In"
        ]
        if not sets:
            return None
        union |= set.intersection(*sets)
    return union if terms_of(pod) else None


def judge(pod, node, on_node):
    """Return (plugin, reasons) of the first failing plugin, or None."""
    names = named_nodes(pod)
    if names is not None and not names:
        return "NodeAffinity", ("pod affinity terms conflict",)
    if names is not None and node.metadata.name not in names:
        return "NodeAffinity", ()
    cordon = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
    if node.spec.unschedulable and not tolerated(pod, cordon):
        return "NodeUnschedulable", ("node(s) were unschedulable",)
    if pod.spec.node_name not in {"", node.metadata.name}:
        return "NodeName", ("node(s) didn't match the requested node name",)
    for taint in node.spec.taints or ():
        if taint.effect in {"NoSchedule", "NoExecute"} and not tolerated(pod, taint):
            return "TaintToleration", ("node(s) had untolerated taint(s)",)
    selector = pod.spec.node_selector or {}
    terms = terms_of(pod)
    if any(node.metadata.labels.get(key) != value for key, value in selector.items()) or (
        terms is not None and not any(term_holds(one, node) for one in terms)
    ):
        return "NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",)
    for protocol, port, ip in ports_of(pod):
        for other in on_node:
            for other_protocol, other_port, other_ip in ports_of(other):
                same = (protocol, port) == (other_protocol, other_port)
                if same and (ip == other_ip or "0.0.0.0" in (ip, other_ip)):
                    return "NodePorts", ("node(s) didn't have free ports for the requested pod ports",)
    return _judge_resources(pod, node, on_node)


def _judge_resources(pod, node, on_node):
    offered = {key: amount(text) for key, text in node.status.allocatable.items()}
    reasons = []
    if len(on_node) + 1 > offered.get("pods", 0):
        reasons.append("Too many pods")
    requested = requests_of(pod)
    for key in (*ORDER, *sorted(set(requested) - set(ORDER))):
        used = sum(requests_of(other).get(key, 0) for other in on_node)
        if requested.get(key, 0) > 0 and requested[key] > offered.get(key, 0) - used:
            reasons.append(f"Insufficient {key}")
    return ("NodeResourcesFit", tuple(reasons)) if reasons else None


def renamed(pod, name):
    return replace(pod, metadata=replace(pod.metadata, name=name, uid=f"uid-{name}"))
