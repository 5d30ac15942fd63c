"""The rights that stored Roles, ClusterRoles and their bindings grant to the user of a request."""

from __future__ import annotations

import pytest
from tests.cluster.served import TOKEN
from tests.embedded.server.test_requests import ask

from kubetide.embedded.apiserver.http import Identities, User
from kubetide.objects.kinds import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    PODS,
    ROLE_BINDINGS,
    ROLES,
)
from kubetide.testing import builders

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
RBAC = "rbac.authorization.k8s.io"
ANN = {"kind": "User", "name": "ann"}
STAFF = {"kind": "Group", "name": "staff"}
WEB = {"kind": "ServiceAccount", "name": "web"}


def rule(verbs, resources, groups=("",), **more):
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": list(groups), **more}


GRANTS = [
    (ROLES, "shop", {"metadata": {"name": "reader"}, "rules": [rule("get list", "pods")]}),
    (ROLE_BINDINGS, "shop", {"metadata": {"name": "a"}, "subjects": [ANN], "roleRef": ("Role", "reader")}),
    (
        CLUSTER_ROLES,
        "",
        {
            "metadata": {"name": "one-map", "labels": {"adds": "yes"}},
            "rules": [rule("get list update", "configmaps", resourceNames=["settings"])],
        },
    ),
    (
        CLUSTER_ROLES,
        "",
        {
            "metadata": {"name": "sum"},
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"adds": "yes"}}]},
        },
    ),
    (
        CLUSTER_ROLE_BINDINGS,
        "",
        {"metadata": {"name": "b"}, "subjects": [STAFF], "roleRef": ("ClusterRole", "sum")},
    ),
    (
        CLUSTER_ROLES,
        "",
        {
            "metadata": {"name": "scaler"},
            "rules": [
                rule("update", "*/scale", groups=["apps"]),
                {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
            ],
        },
    ),
    (
        ROLE_BINDINGS,
        "shop",
        {"metadata": {"name": "c"}, "subjects": [WEB], "roleRef": ("ClusterRole", "scaler")},
    ),
    (
        CLUSTER_ROLE_BINDINGS,
        "",
        {
            "metadata": {"name": "d"},
            "subjects": [{"kind": "User", "name": "ops"}],
            "roleRef": ("ClusterRole", "scaler"),
        },
    ),
    (
        CLUSTER_ROLE_BINDINGS,
        "",
        {
            "metadata": {"name": "e"},
            "subjects": [{"kind": "User", "name": "boss"}],
            "roleRef": ("ClusterRole", "cluster-admin"),
        },
    ),
    (
        ROLE_BINDINGS,
        "shop",
        {
            "metadata": {"name": "f"},
            "subjects": [{"kind": "User", "name": "eve"}],
            "roleRef": ("ClusterRole", "view"),
        },
    ),
]


async def grants(cluster):
    await cluster.create(NAMESPACES, builders.namespace("shop"))
    await cluster.create(PODS, builders.pod("web"), namespace="shop")
    for kind, namespace, body in GRANTS:
        if "roleRef" in body:
            of, name = body["roleRef"]
            reference = {"apiGroup": RBAC, "kind": of, "name": name}
            await cluster.create(kind, {**body, "roleRef": reference}, namespace=namespace)
        else:
            await cluster.create(kind, body, namespace=namespace)


def acting(user, *groups):
    return {"Impersonate-User": user} | ({"Impersonate-Group": groups[0]} if groups else {})


SHOP = "/api/v1/namespaces/shop"
DEFAULT = "/api/v1/namespaces/default"
ACCOUNT = "system:serviceaccount:shop:web"


@pytest.mark.parametrize(
    ("user", "groups", "method", "path", "code"),
    [
        ("ann", (), "GET", f"{SHOP}/pods", 200),
        ("ann", (), "GET", f"{SHOP}/pods/web", 200),
        ("ann", (), "DELETE", f"{SHOP}/pods/web", 403),
        ("ann", (), "GET", f"{DEFAULT}/pods", 403),
        ("ann", (), "GET", "/api/v1/pods", 403),
        ("ann", (), "GET", f"{SHOP}/configmaps/settings", 403),
        ("ann", ("staff",), "GET", f"{SHOP}/configmaps/settings", 404),
        ("ann", ("staff",), "GET", f"{DEFAULT}/configmaps/settings", 404),
        ("ann", ("staff",), "GET", f"{SHOP}/configmaps/others", 403),
        ("ann", ("staff",), "GET", f"{SHOP}/configmaps", 403),
        ("ann", ("staff",), "GET", f"{SHOP}/configmaps?fieldSelector=metadata.name%3Dsettings", 200),
        ("ann", ("staff",), "GET", f"{SHOP}/configmaps?fieldSelector=metadata.name%3Dothers", 403),
        (ACCOUNT, (), "PUT", "/apis/apps/v1/namespaces/shop/deployments/no/scale", 404),
        (ACCOUNT, (), "PUT", "/apis/apps/v1/namespaces/shop/deployments/no/status", 403),
        (ACCOUNT, (), "PUT", "/apis/apps/v1/namespaces/default/deployments/no/scale", 403),
        (ACCOUNT, (), "GET", "/metrics", 403),
        ("ops", (), "GET", "/metrics", 200),
        ("ops", (), "PUT", "/apis/apps/v1/namespaces/default/deployments/no/scale", 404),
        ("boss", (), "DELETE", f"{SHOP}/pods/web", 200),
        ("nobody", (), "GET", f"{SHOP}/pods", 403),
    ],
)
def test_requests_follow_the_stored_roles(user, groups, method, path, code):
    """Users, groups and accounts have what their bindings grant, where they grant it, and no more."""
    meta = {"name": "no", "namespace": "default" if "/default/" in path else "shop"}
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": meta, "spec": {"replicas": 1}}
    body = scale if method == "PUT" else None
    answer = ask((method, path, body, acting(user, *groups)), before=grants)
    assert answer.code == code, answer.json


def may(user, **attributes):
    spec = {"spec": {"resourceAttributes": {"namespace": "shop", **attributes}}}
    return ask(("POST", REVIEW, spec, acting(user)), before=grants).json["status"]


def test_can_i_follows_the_stored_roles():
    """`kubectl auth can-i` says what a request would meet, and which role is not there."""
    assert may("ann", verb="list", resource="pods") == {"allowed": True}
    assert may("ann", verb="delete", resource="pods") == {"allowed": False}
    assert may("eve", verb="list", resource="pods") == {
        "allowed": False,
        "reason": f'RBAC: clusterrole.{RBAC} "view" not found',
    }


def test_a_refusal_names_the_role_that_is_not_there():
    """The message ends as the RBAC authorizer's does."""
    refused = ask(("GET", f"{SHOP}/pods", None, acting("eve")), before=grants).json["message"]
    assert refused == (
        'pods is forbidden: User "eve" cannot list resource "pods" in API group "" in the namespace "shop": '
        f'RBAC: clusterrole.{RBAC} "view" not found'
    )


def test_rules_are_listed_as_they_are_granted():
    """`kubectl auth can-i --list` shows names of objects and paths."""
    asked = ("POST", RULES_REVIEW, {"spec": {"namespace": "shop"}}, acting("ann", "staff"))
    status = ask(asked, before=grants).json["status"]
    assert {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]} in status["resourceRules"]
    named = rule("get list update", "configmaps", resourceNames=["settings"])
    assert named in status["resourceRules"]
    assert status["incomplete"] is False


def test_impersonation_can_be_granted():
    """The sender of a request has the stored roles too: a binding lets it act as others."""

    async def more(cluster):
        await grants(cluster)
        body = {
            "metadata": {"name": "as-ann"},
            "rules": [rule("impersonate", "users", resourceNames=["ann"])],
        }
        await cluster.create(CLUSTER_ROLES, body)
        reference = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "as-ann"}
        binding = {
            "metadata": {"name": "g"},
            "subjects": [{"kind": "User", "name": "helper"}],
            "roleRef": reference,
        }
        await cluster.create(CLUSTER_ROLE_BINDINGS, binding)

    who = Identities({TOKEN: User("helper")})
    listing = ("GET", f"{SHOP}/pods", None)
    assert ask((*listing, acting("ann")), before=more, identities=who).code == 200
    assert ask((*listing, acting("boss")), before=more, identities=who).code == 403
    assert ask((*listing, None), before=more, identities=who).code == 403
