"""Differences from a real control plane that a session with kubectl found."""

from __future__ import annotations

from tests.embedded.server.test_requests import CONFIG, DEPLOYMENTS, TABLE, ask, config

from kubetide.embedded.apiserver.http import Identities, Rule, User
from kubetide.testing import builders


def test_the_table_of_a_scale():
    """A scale has columns of its own, not those of what it scales."""
    deployment = builders.deployment("web", replicas=3)
    answer = ask(
        ("POST", DEPLOYMENTS, deployment), ("GET", f"{DEPLOYMENTS}/web/scale", None, {"Accept": TABLE})
    )
    assert [column["name"] for column in answer.json["columnDefinitions"]] == [
        "Name",
        "Desired",
        "Available",
        "Age",
    ]
    assert answer.json["rows"][0]["cells"][:3] == ["web", 3, 0]


def test_the_rules_of_a_user():
    """A user that asks what it may do gets its own rules, those of the namespace, and what is open to all."""
    reader = User(
        "r", (), (Rule(("get",), ("",), ("pods",), ("shop",)), Rule(("list",), ("",), ("nodes",), ("other",)))
    )
    path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
    asked = {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"namespace": "shop"},
    }
    answer = ask(("POST", path, asked), token="r", identities=Identities({"r": reader}))
    first, *others = answer.json["status"]["resourceRules"]
    assert first == {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    assert all(rule["verbs"] == ["create"] for rule in others)
    refused = ask(("POST", path, {**asked, "spec": {}}), token="r", identities=Identities({"r": reader}))
    assert (refused.code, refused.json["message"]) == (400, "no namespace on request")


def test_resources_are_found_in_order():
    """Discovery names the resources of a group in alphabetical order, as kubectl shows them."""
    names = [
        each["name"] for each in ask(("GET", "/apis/apps/v1")).json["resources"] if "/" not in each["name"]
    ]
    assert names == sorted(names)


def test_a_json_patch_that_does_not_apply():
    """A patch whose test fails cannot be processed; one that is no list cannot be read."""
    patch = [{"op": "test", "path": "/data/k", "value": "w"}]
    json_type = {"Content-Type": "application/json-patch+json"}
    made = ("POST", CONFIG, config("a", data={"k": "v"}))
    answer = ask(made, ("PATCH", f"{CONFIG}/a", patch, json_type))
    assert (answer.code, answer.json["reason"]) == (422, "Invalid")
    assert answer.json["message"] == "the server rejected our request due to an error in our request"
    assert ask(made, ("PATCH", f"{CONFIG}/a", {"op": "test"}, json_type)).code == 400
