"""Discovery as servers of all ages report it."""

from __future__ import annotations

import asyncio
import json

import pytest

from kubetide.cluster.discovery import served_kinds
from kubetide.objects.kinds import HPAS, HPAS_V1, PODS, Kind, as_registered, version_priority
from kubetide.ports.errors import InternalError, Unavailable

VERBS = ["create", "get", "list", "watch"]
TABS = Kind(
    "example.com", "v1", "CronTab", "crontabs", dict, subresources=("status", "scale"), short_names=("ct",)
)


def resource(name, kind, **more):
    return {"name": name, "kind": kind, "namespaced": True, "verbs": VERBS, **more}


def plain_group(name, preferred, *others):
    versions = [{"groupVersion": f"{name}/{one}", "version": one} for one in (*others, preferred)]
    return {"name": name, "versions": versions, "preferredVersion": {"version": preferred}}


OLD = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/api/v1": {"resources": [resource("pods", "Pod"), resource("pods/eviction", "Eviction")]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            plain_group("metrics.k8s.io", "v1beta1"),
            plain_group("autoscaling", "v2", "v1"),
            plain_group("authorization.k8s.io", "v1"),
            plain_group("example.com", "v1"),
        ],
    },
    "/apis/autoscaling/v2": {"resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")]},
    "/apis/autoscaling/v1": {"resources": [resource("horizontalpodautoscalers", "HorizontalPodAutoscaler")]},
    "/apis/authorization.k8s.io/v1": {
        "resources": [{"name": "selfsubjectaccessreviews", "kind": "SelfSubjectAccessReview", "verbs": ["create"]}]
    },
    "/apis/example.com/v1": {
        "resources": [
            resource("crontabs", "CronTab", shortNames=["ct"]),
            resource("crontabs/status", "CronTab"),
            resource("crontabs/scale", "Scale"),
        ]
    },
}  # fmt: skip

NEW = {
    "/api": {"kind": "APIGroupDiscoveryList", "items": None},
    "/apis": {
        "kind": "APIGroupDiscoveryList",
        "items": [
            {"metadata": {"name": "metrics.k8s.io"}, "versions": [{"version": "v1beta1", "freshness": "Stale"}]},
            {
                "metadata": {"name": "example.com"},
                "versions": [
                    {
                        "version": "v1",
                        "resources": [
                            {
                                "resource": "crontabs",
                                "responseKind": {"group": "example.com", "version": "v1", "kind": "CronTab"},
                                "scope": "Namespaced",
                                "verbs": VERBS,
                                "shortNames": ["ct"],
                                "subresources": [{"subresource": "status"}, {"subresource": "scale"}],
                            },
                            {"resource": "ghosts", "responseKind": None, "verbs": VERBS},
                            {"resource": "reviews", "responseKind": {"kind": "Review"}, "verbs": ["create"]},
                        ],
                    }
                ],
            },
        ],
    },
}  # fmt: skip


def kinds_of(documents):
    """Discover over the documents of a table; every other path is unavailable."""

    async def fetch(path):
        if path not in documents:
            raise Unavailable("the server is currently unable to handle the request")
        return json.dumps(documents[path]).encode()

    return asyncio.run(served_kinds(fetch))


def test_a_server_without_the_aggregated_form():
    """Resource lists are read one by one; a group that fails is left out, a preferred version comes first."""
    assert kinds_of(OLD) == [PODS, HPAS, HPAS_V1, TABS]


def test_the_aggregated_form():
    """Stale groups, resources without a kind and those that cannot be listed are left out."""
    assert kinds_of(NEW) == [TABS]


def test_roots_that_fail():
    """Without the roots nothing is known, and the server's own error says so."""
    with pytest.raises(Unavailable, match="currently unable"):
        kinds_of({"/api": OLD["/api"]})
    with pytest.raises(InternalError, match="discovery cannot be read"):
        kinds_of({"/api": []})


def test_order_of_versions():
    """Stable versions come before beta, beta before alpha, newer before older, other names last."""
    names = ["foo10", "v1alpha1", "v2", "v1beta2", "v11", "v1", "v2beta1", "foo1"]
    ordered = ["v11", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo1", "foo10"]
    assert sorted(names, key=version_priority) == ordered


def test_a_kind_of_the_registry_is_found_by_place():
    """Only what is served at the same place is taken for a kind of the registry."""
    assert as_registered(PODS.untyped) is PODS
    assert as_registered(TABS) is TABS
