"""Pods with inter-pod rules: random ones, and the two rules as plain Python over objects."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace
from tests.scheduling.plain import make_container, make_node, make_pod, term_holds, terms_of, tolerated

from kubetide.objects.meta import LabelSelector, LabelSelectorRequirement
from kubetide.objects.node import Taint
from kubetide.objects.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint

HOSTNAME = "kubernetes.io/hostname"
NAMESPACES = {"default": {"team": "a"}, "dev": {}}
KEYS = ("zone", HOSTNAME, "rack")

selectors = st.sampled_from(
    (
        None,
        LabelSelector(),
        LabelSelector(match_labels={"app": "a"}),
        LabelSelector(match_labels={"app": "b"}),
        LabelSelector(
            match_expressions=(LabelSelectorRequirement(key="app", operator="In", values=("a", "b")),)
        ),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="app", operator="DoesNotExist"),)),
    )
)
namespace_selectors = st.sampled_from(
    (
        None,
        None,
        LabelSelector(),
        LabelSelector(match_labels={"team": "a"}),
        LabelSelector(match_expressions=(LabelSelectorRequirement(key="team", operator="DoesNotExist"),)),
    )
)
terms = st.builds(
    PodAffinityTerm,
    label_selector=selectors,
    namespace_selector=namespace_selectors,
    namespaces=st.sampled_from((None, None, ("dev",), ("default", "dev"))),
    topology_key=st.sampled_from(KEYS),
)
constraints = st.builds(
    TopologySpreadConstraint,
    topology_key=st.sampled_from(KEYS),
    max_skew=st.integers(1, 3),
    min_domains=st.sampled_from((None, None, 1, 3)),
    when_unsatisfiable=st.sampled_from(("DoNotSchedule", "DoNotSchedule", "ScheduleAnyway")),
    label_selector=selectors,
    match_label_keys=st.sampled_from((None, None, ("app",), ("none",))),
    node_affinity_policy=st.sampled_from((None, "Ignore", "Honor")),
    node_taints_policy=st.sampled_from((None, "Ignore", "Honor")),
)


def pod(name, namespace, app, near, apart, spread, cpu, selector):
    affinity = None
    if near or apart:
        affinity = Affinity(
            pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=tuple(near)),
            pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=tuple(apart)),
        )
    return make_pod(
        name,
        namespace=namespace,
        labels={"app": app} if app else None,
        containers=(make_container({"cpu": f"{cpu}m"}),),
        affinity=affinity,
        topology_spread_constraints=tuple(spread),
        node_selector=selector,
    )


def pods(names=tuple(f"p{number}" for number in range(9))):
    return st.builds(
        pod,
        st.sampled_from(names),
        st.sampled_from(("default", "default", "dev", "ghost")),
        st.sampled_from(("a", "b", "")),
        st.one_of(st.just([]), st.just([]), st.lists(terms, max_size=2)),
        st.one_of(st.just([]), st.lists(terms, max_size=2)),
        st.one_of(st.just([]), st.lists(constraints, max_size=2)),
        st.sampled_from((0, 300, 1000)),
        st.sampled_from((None, None, None, {"zone": "x"})),
    )


def spread_pods(names=tuple(f"p{number}" for number in range(9)), *, most=2):
    """Draw pods that count each other, spread by zone and by host."""
    rules = st.builds(
        TopologySpreadConstraint,
        topology_key=st.sampled_from(("zone", HOSTNAME)),
        max_skew=st.integers(1, 3),
        min_domains=st.sampled_from((None, 3, 5)),
        when_unsatisfiable=st.just("DoNotSchedule"),
        label_selector=st.just(LabelSelector(match_labels={"app": "a"})),
    )
    return st.builds(
        pod,
        st.sampled_from(names),
        st.just("default"),
        st.sampled_from(("a", "a", "b")),
        st.just([]),
        st.just([]),
        st.lists(rules, min_size=min(1, most), max_size=most),
        st.sampled_from((0, 300, 1000)),
        st.none(),
    )


def nodes(names=("n0", "n1", "n2", "n3", "n4")):
    return st.builds(
        lambda name, labels, tainted, cpu, count: make_node(
            name,
            labels=labels,
            taints=(Taint(key="k", effect="NoSchedule"),) if tainted else (),
            cpu=f"{cpu}m",
            pods=count,
        ),
        st.sampled_from(names),
        st.fixed_dictionaries(
            {}, optional={"zone": st.sampled_from(("x", "y")), "rack": st.sampled_from(("1", "2", ""))}
        ),
        st.sampled_from((False, False, False, True)),
        st.integers(0, 6000),
        st.integers(1, 8),
    )


# ── Plain rules ──


def chosen(selector, labels):
    if selector is None:
        return False
    for key, value in (selector.match_labels or {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.match_expressions or ():
        value = labels.get(one.key)
        if one.operator == "In" and value not in one.values:
            return False
        if one.operator == "DoesNotExist" and value is not None:
            return False
    return True


def labels_of(thing):
    return thing.metadata.labels or {}


def in_namespaces(term, owner, namespace, known):
    """``known`` holds every set of labels that the selector is asked about."""
    if namespace in (term.namespaces or ()):
        return True
    if term.namespace_selector is None:
        return not term.namespaces and namespace == owner.metadata.namespace
    return any(chosen(term.namespace_selector, labels) for labels in known)


def means(term, incoming, other):
    """Whether a term of the incoming pod means the other one."""
    namespace = other.metadata.namespace
    known = [{}, NAMESPACES[namespace]] if namespace in NAMESPACES else [{}]
    return in_namespaces(term, incoming, namespace, known) and chosen(term.label_selector, labels_of(other))


def guards(term, existing, incoming):
    """Whether a term of the existing pod means the incoming one."""
    namespace = incoming.metadata.namespace
    known = [NAMESPACES.get(namespace, {})]
    return in_namespaces(term, existing, namespace, known) and chosen(
        term.label_selector, labels_of(incoming)
    )


def required_terms(pod, which):
    affinity = pod.spec.affinity
    part = getattr(affinity, which) if affinity else None
    return (part.required_during_scheduling_ignored_during_execution or ()) if part else ()


def selects(pod, node):
    if any(labels_of(node).get(key) != value for key, value in (pod.spec.node_selector or {}).items()):
        return False
    return (
        pod.spec.affinity is None
        or pod.spec.affinity.node_affinity is None
        or any(term_holds(one, node) for one in terms_of(pod))
    )


def judge_spread(pod, node, cluster):
    """Whether the hard constraints hold: ``cluster`` is a list of (node, pods on it)."""
    hard = [
        one for one in pod.spec.topology_spread_constraints or () if one.when_unsatisfiable == "DoNotSchedule"
    ]
    for one in hard:
        key = one.topology_key
        if key not in labels_of(node):
            return ("PodTopologySpread", "missing")
        selector = one.label_selector
        extra = {}
        if selector is not None:
            extra = {
                name: labels_of(pod)[name] for name in one.match_label_keys or () if name in labels_of(pod)
            }
            selector = replace(selector, match_labels={**(selector.match_labels or {}), **extra})
            clash = any(
                (one.label_selector.match_labels or {}).get(name, value) != value
                for name, value in extra.items()
            )
        empty = selector is not None and not selector.match_labels and not selector.match_expressions
        counts = {}
        for other, others in cluster:
            if any(each.topology_key not in labels_of(other) for each in hard):
                continue
            if one.node_affinity_policy != "Ignore" and not selects(pod, other):
                continue
            if one.node_taints_policy == "Honor" and any(
                not tolerated(pod, taint) for taint in other.spec.taints
            ):
                continue
            domain = labels_of(other)[key]
            counts.setdefault(domain, 0)
            if not empty and selector is not None and not clash:
                counts[domain] += sum(
                    each.metadata.namespace == pod.metadata.namespace
                    and each.metadata.deletion_timestamp is None
                    and chosen(selector, labels_of(each))
                    for each in others
                )
        least = min(counts.values(), default=0) if len(counts) >= (one.min_domains or 1) else 0
        own = int(selector is not None and not clash and chosen(selector, labels_of(pod)))
        if counts.get(labels_of(node)[key], 0) + own - least > one.max_skew:
            return ("PodTopologySpread", "skew")
    return None


def judge_affinity(pod, node, cluster):
    """Which of the three kinds of terms refuses the node, or None."""
    near = required_terms(pod, "pod_affinity")

    def same_domain(other, key):
        return (
            key in labels_of(node)
            and key in labels_of(other)
            and labels_of(other)[key] == labels_of(node)[key]
        )

    if near:
        domain_counts = [
            (other, each)
            for other, others in cluster
            for each in others
            if all(means(t, pod, each) for t in near)
        ]
        if any(term.topology_key not in labels_of(node) for term in near):
            return ("InterPodAffinity", "near")
        satisfied = all(
            any(same_domain(other, term.topology_key) for other, _ in domain_counts) for term in near
        )
        somewhere = any(term.topology_key in labels_of(other) for term in near for other, _ in domain_counts)
        if not satisfied and (somewhere or not all(means(term, pod, pod) for term in near)):
            return ("InterPodAffinity", "near")
    for term in required_terms(pod, "pod_anti_affinity"):
        for other, others in cluster:
            if same_domain(other, term.topology_key) and any(means(term, pod, each) for each in others):
                return ("InterPodAffinity", "apart")
    for other, others in cluster:
        for each in others:
            for term in required_terms(each, "pod_anti_affinity"):
                if same_domain(other, term.topology_key) and guards(term, each, pod):
                    return ("InterPodAffinity", "guarded")
    return None


__all__ = ["NAMESPACES", "judge_affinity", "judge_spread", "nodes", "pods"]
