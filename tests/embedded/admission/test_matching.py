"""Which webhooks a request concerns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.embedded.admission.asking import V1, V2, attributes, hooks, rule, target, webhook

from kubetide.embedded.apiserver.admission.matching import covers, may_concern, view_for


def first(**changes):
    return hooks(webhook("a.b.c", **changes))[0]


def one_rule(**changes):
    return first(rules=[rule(**changes)]).rules[0]


RESOURCES = [
    # resources of the rule, resource, subresource, covered
    (["pods"], "pods", "", True),
    (["pods"], "pods", "status", False),
    (["pods/status"], "pods", "status", True),
    (["pods/status"], "pods", "", False),
    (["pods/*"], "pods", "", True),
    (["pods/*"], "pods", "binding", True),
    (["pods/*"], "nodes", "", False),
    (["*"], "nodes", "", True),
    (["*"], "nodes", "status", False),
    (["*/status"], "nodes", "status", True),
    (["*/status"], "nodes", "", False),
    (["*/*"], "pods", "", True),
    (["*/*"], "pods", "eviction", True),
    (["nodes", "pods/scale"], "pods", "scale", True),
]


@pytest.mark.parametrize(("resources", "plural", "subresource", "covered"), RESOURCES)
def test_resources(resources, plural, subresource, covered):
    """A resource alone does not cover its subresources; ``/*`` covers both."""
    found = one_rule(resources=resources)
    assert covers(found, target(plural=plural, subresource=subresource), "v1") is covered


SCOPES = [
    # scope, group, resource, namespace, covered
    ("*", "", "pods", "shop", True),
    ("*", "", "nodes", "", True),
    ("Namespaced", "", "pods", "shop", True),
    ("Namespaced", "", "nodes", "", False),
    ("Namespaced", "", "namespaces", "shop", False),
    ("Cluster", "", "pods", "shop", False),
    ("Cluster", "", "nodes", "", True),
    ("Cluster", "", "namespaces", "shop", True),
]


@pytest.mark.parametrize(("scope", "group", "plural", "namespace", "covered"), SCOPES)
def test_scopes(scope, group, plural, namespace, covered):
    """A Namespace is sent with its own name, and is still at the cluster's scope."""
    found = one_rule(scope=scope, resources=["*"], apiGroups=["*"])
    assert covers(found, target(group=group, plural=plural, namespace=namespace), "v1") is covered


def test_operations_groups_and_versions():
    """Each is named, or all of them are with a star."""
    found = one_rule(operations=["CREATE", "DELETE"], apiGroups=["apps"], apiVersions=["v1", "v2"])
    assert covers(found, target("DELETE", group="apps"), "v2")
    assert not covers(found, target("UPDATE", group="apps"), "v2")
    assert not covers(found, target("DELETE", group=""), "v2")
    assert not covers(found, target("DELETE", group="apps"), "v3")
    assert covers(one_rule(operations=["*"], apiGroups=["*"], apiVersions=["*"]), target("UPDATE", "x"), "v9")


def names(*values):
    return st.lists(st.sampled_from(["*", *values]), min_size=1, max_size=2, unique=True)


RULES = st.fixed_dictionaries(
    {
        "operations": names("CREATE", "UPDATE", "DELETE"),
        "apiGroups": names("", "apps"),
        "apiVersions": names("v1", "v2"),
        "resources": names("pods", "pods/*", "pods/status", "*/status", "*/*"),
        "scope": st.sampled_from(["*", "Namespaced", "Cluster"]),
    }
)
TARGETS = st.builds(
    target,
    st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
    st.sampled_from(["", "apps", "admissionregistration.k8s.io"]),
    st.sampled_from(["pods", "nodes", "namespaces"]),
    st.sampled_from(["", "status", "scale"]),
    st.sampled_from(["", "shop"]),
)
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]), max_size=2)
OBJECTS = st.none() | LABELS.map(lambda labels: {"metadata": {"name": "x", "labels": labels}})


@given(
    rules=st.lists(RULES, max_size=2),
    what=TARGETS,
    views=st.sampled_from([(V1,), (V1, V2), (V2, V1)]),
    policy=st.sampled_from(["Exact", "Equivalent"]),
    selectors=st.tuples(LABELS, LABELS),
    labels=LABELS,
    objects=st.tuples(OBJECTS, OBJECTS),
)
def test_what_is_passed_over_early_concerns_nobody(rules, what, views, policy, selectors, labels, objects):
    """The check before a request is handled never leaves out a webhook that would have to be asked."""
    of_namespace, of_object = selectors
    hook = first(
        rules=rules,
        matchPolicy=policy,
        namespaceSelector={"matchLabels": of_namespace},
        objectSelector={"matchLabels": of_object},
    )
    asked = attributes(target=what, views=views, object=objects[0], old=objects[1], namespace_labels=labels)
    view = view_for(hook, asked)
    versions = [one.version for one in views]
    if view is not None:
        assert may_concern(hook, what, *versions)
        assert policy == "Equivalent" or view is views[0]
        found = [one and one["metadata"]["labels"] for one in objects]
        assert not of_object or any(one is not None and of_object.items() <= one.items() for one in found)
    elif not of_namespace and not of_object:
        assert not may_concern(hook, what, *versions)


def test_the_version_of_the_request_comes_first():
    """A webhook with a rule for both versions sees that of the request; else earlier rules decide."""
    both = first(rules=[rule(apiVersions=["v2"]), rule(apiVersions=["v1"])])
    assert view_for(both, attributes(views=(V1, V2))) is V1
    other = first(rules=[rule(apiVersions=["v2"])])
    assert view_for(other, attributes(views=(V1, V2))) is V2
    assert (
        view_for(first(rules=[rule(apiVersions=["v2"])], matchPolicy="Exact"), attributes(views=(V1, V2)))
        is None
    )


def test_the_object_selector_looks_at_both_states():
    """An object that had the label is shown when it loses it, and one without is not."""
    hook = first(objectSelector={"matchLabels": {"a": "1"}})
    with_label, without = ({"metadata": {"labels": labels}} for labels in ({"a": "1"}, {}))
    assert view_for(hook, attributes(object=without, old=with_label)) is V1
    assert view_for(hook, attributes(object=with_label, old=None)) is V1
    assert view_for(hook, attributes(object=None, old=with_label)) is V1
    assert view_for(hook, attributes(object=without, old=without)) is None
    absent = first(objectSelector={"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]})
    assert view_for(absent, attributes(object={"metadata": {}}, old=None)) is V1


def test_the_namespace_selector():
    """It looks at the namespace's labels, of a Namespace at its own, and never leaves out what is in none."""
    hook = first(namespaceSelector={"matchLabels": {"team": "a"}}, rules=[rule(resources=["*"])])
    assert view_for(hook, attributes(namespace_labels={"team": "a"})) is V1
    assert view_for(hook, attributes(namespace_labels={"team": "b"})) is None
    assert view_for(hook, attributes(target=target(plural="nodes", namespace=""))) is V1
    namespace = target(plural="namespaces")
    new = {"metadata": {"labels": {"team": "a"}}}
    assert view_for(hook, attributes(target=namespace, object=new)) is V1
    assert (
        view_for(hook, attributes(target=namespace, object={"metadata": {}}, namespace_labels={"team": "a"}))
        is None
    )
    deletion = target("DELETE", plural="namespaces")
    assert (
        view_for(hook, attributes(target=deletion, object=None, old=new, namespace_labels={"team": "a"}))
        is V1
    )


def test_configurations_are_in_the_order_of_their_names():
    """Configurations are sorted by name; the webhooks of one configuration are in its own order."""
    found = [*hooks(webhook("z.a.b"), webhook("a.a.b"), called="b"), *hooks(webhook("m.a.b"), called="a")]
    assert [hook.identity for hook in found] == ["b/z.a.b", "b/a.a.b", "a/m.a.b"]
