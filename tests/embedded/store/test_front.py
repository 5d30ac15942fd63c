"""The way in through webhooks, in the process: what is reviewed, when, and what it costs nobody."""

from __future__ import annotations

import pytest
from tests.embedded.admission.asking import Answering, patch, rule, set_label, webhook

from kubetide.embedded.apiserver.admission import UserInfo
from kubetide.embedded.apiserver.store import EmbeddedCluster, Options, Request, Store
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    VALIDATING_WEBHOOKS,
    Kind,
)
from kubetide.ports.errors import AlreadyExists, ApiError, Forbidden, InternalError, Invalid
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T00:00:00Z")
ME = UserInfo("me")
EVERYTHING = [rule(apiGroups=["*"], apiVersions=["*"], resources=["*/*"])]
GADGETS = Kind("example.com", "v1", "Gadget", "gadgets", dict)
WHERE = {"namespace": "default"}


def story(main, say=lambda *_: None):
    """Run ``main(cluster, caller, clock)`` in virtual time."""

    async def run(clock):
        caller = Answering(say)
        await main(EmbeddedCluster(Store(), clock, seed=1, webhooks=caller), caller, clock)

    run_virtual(run, start=START)


async def configure(cluster, kind, *webhooks, name="hooks"):
    await cluster.create(kind, {"metadata": {"name": name}, "webhooks": list(webhooks)})


def everything(name="a.x.y", **changes):
    return webhook(name, rules=EVERYTHING, **changes)


def test_nobody_pays_without_a_configuration():
    """Without webhooks requests go past the front; they do so again once the last configuration is deleted."""

    async def main(cluster, caller, _clock):
        await cluster.list(PODS)
        assert cluster.front.idle
        await configure(cluster, VALIDATING_WEBHOOKS, everything())
        assert not cluster.front.idle
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        assert caller.names == ["a.x.y"]
        await cluster.delete(VALIDATING_WEBHOOKS, "hooks")
        await cluster.list(PODS)
        assert cluster.front.idle

    story(main)


def test_configurations_that_are_there_already_count():
    """A store that is brought back asks its webhooks from the first request."""

    async def main(clock):
        store = Store()
        await configure(EmbeddedCluster(store, clock, seed=1), VALIDATING_WEBHOOKS, everything())
        caller = Answering(lambda *_: {"allowed": False})
        again = EmbeddedCluster(store, clock, seed=1, webhooks=caller)
        with pytest.raises(ApiError, match="without explanation"):
            await again.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)

    run_virtual(main, start=START)


def test_a_run_without_a_caller():
    """A request that a webhook matches is refused under Fail with the reason; one that none matches is not."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await configure(cluster, MUTATING_WEBHOOKS, webhook("a.x.y"))
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        with pytest.raises(InternalError, match="no webhook caller in this run"):
            await cluster.create(PODS, builders.pod("a"), **WHERE)

    run_virtual(main, start=START)


def test_mutation_comes_before_validation():
    """A webhook may supply what the object lacks, and is refused in the object's own name where it does harm."""
    fix = patch({"op": "add", "path": "/spec/containers", "value": [{"name": "c", "image": "i"}]})
    spoil = patch({"op": "remove", "path": "/spec/containers"})

    async def main(cluster, caller, _clock):
        await configure(cluster, MUTATING_WEBHOOKS, webhook("a.x.y"))
        made = await cluster.create(PODS, {"metadata": {"name": "p"}, "spec": {}}, **WHERE)
        assert [one.name for one in made.spec.containers] == ["c"]
        caller.say = lambda *_: spoil
        with pytest.raises(Invalid, match=r"spec.containers: Required value"):
            await cluster.create(PODS, builders.pod("q"), **WHERE)

    story(main, lambda *_: fix)


def definition(*versions):
    """Define Gadgets, in versions with a required size and a colour; the first is stored."""
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "required": ["size"],
                "properties": {"size": {"type": "integer"}, "color": {"type": "string", "default": "red"}},
            }
        },
    }
    return {
        "metadata": {"name": "gadgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": name,
                    "served": True,
                    "storage": name == versions[0],
                    "schema": {"openAPIV3Schema": schema},
                }
                for name in versions
            ],
        },
    }


def test_a_custom_kind_is_completed():
    """The field that a schema requires may come from a webhook; what the schema does not know is cut off."""
    sized = patch(
        {"op": "add", "path": "/spec/size", "value": 3}, {"op": "add", "path": "/spec/x", "value": 1}
    )

    async def main(cluster, caller, _clock):
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition("v1"))
        rules = [rule(apiGroups=["example.com"], resources=["gadgets"])]
        await configure(cluster, MUTATING_WEBHOOKS, webhook("a.x.y", rules=rules))
        made = await cluster.create(GADGETS, {"metadata": {"name": "g"}, "spec": {}}, **WHERE)
        assert made["spec"] == {"size": 3, "color": "red"}
        [(_, request)] = caller.asked
        assert request["object"]["spec"] == {"color": "red"}
        assert request["kind"] == {"group": "example.com", "version": "v1", "kind": "Gadget"}

    story(main, lambda *_: sized)


@pytest.mark.parametrize("asked_in", ["v1", "v2"])
@pytest.mark.parametrize("rule_for", ["v1", "v2"])
def test_versions_of_a_custom_kind(asked_in, rule_for):
    """Whatever version is stored, asked in or named by a rule, the review has that of the rule."""

    async def main(cluster, caller, _clock):
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition("v1", "v2"))
        rules = [rule(apiGroups=["example.com"], apiVersions=[rule_for], resources=["gadgets"])]
        await configure(cluster, MUTATING_WEBHOOKS, webhook("a.x.y", rules=rules))
        kind = Kind("example.com", asked_in, "Gadget", "gadgets", dict)
        body = {"metadata": {"name": "g", "labels": {}}, "spec": {"size": 1}}
        made = await cluster.create(kind, body, **WHERE)
        assert (made["apiVersion"], made["metadata"]["labels"]) == (f"example.com/{asked_in}", {"a": "yes"})
        made = await cluster.patch(kind, "g", {"spec": {"size": 2}}, **WHERE)
        assert made["spec"] == {"size": 2, "color": "red"}
        for _, request in caller.asked:
            assert request["object"]["apiVersion"] == f"example.com/{rule_for}"
            assert request["resource"]["version"] == rule_for
            assert request["requestResource"]["version"] == asked_in
        assert caller.asked[1][1]["oldObject"]["apiVersion"] == f"example.com/{rule_for}"

    story(main, lambda *_: set_label("a"))


def test_priorities_are_looked_up_before_and_after():
    """Webhooks see a pod's priority; one that changes the class has to leave the number to the server."""

    async def main(cluster, caller, _clock):
        await cluster.create(PRIORITY_CLASSES, builders.priority_class("high", 7))
        await configure(cluster, MUTATING_WEBHOOKS, webhook("a.x.y"))
        operation = {"op": "add", "path": "/spec/priorityClassName", "value": "high"}
        caller.say = lambda *_: patch(operation)
        with pytest.raises(Forbidden, match="the integer value of priority"):
            await cluster.create(PODS, builders.pod("p"), **WHERE)
        assert caller.asked[0][1]["object"]["spec"]["priority"] == 0
        caller.say = lambda *_: patch(operation, {"op": "remove", "path": "/spec/priority"})
        assert (await cluster.create(PODS, builders.pod("p"), **WHERE)).spec.priority == 7

    story(main)


def test_a_policy_of_preemption_is_that_of_the_class():
    """A pod may name the policy of its class, and no other, as with Kubernetes' Priority admission."""

    async def main(cluster, _caller, _clock):
        polite = builders.priority_class("polite", 7) | {"preemptionPolicy": "Never"}
        await cluster.create(PRIORITY_CLASSES, polite)

        async def make(name, **spec):
            body = builders.pod(name, extra={"spec": spec})
            await cluster.create(PODS, body, **WHERE)
            return (await cluster.get(PODS.untyped, name, **WHERE))["spec"]["preemptionPolicy"]

        assert await make("a") == "PreemptLowerPriority"
        assert await make("b", priorityClassName="polite", preemptionPolicy="Never") == "Never"
        words = "the string value of PreemptionPolicy \\(Never\\) must not be provided in pod spec; .* computed PreemptLower"
        with pytest.raises(Forbidden, match=words):
            await make("c", preemptionPolicy="Never")

    story(main)


def test_a_name_taken_meanwhile():
    """One of two creations that are under review at once is answered with AlreadyExists."""

    async def main(cluster, caller, _clock):
        await configure(cluster, VALIDATING_WEBHOOKS, webhook("a.x.y"))

        async def overtake():
            caller.say = lambda *_: None
            await cluster.create(PODS, builders.pod("p"), **WHERE)

        caller.say = lambda *_: overtake()
        with pytest.raises(AlreadyExists):
            await cluster.create(PODS, builders.pod("p"), **WHERE)

    story(main)


def test_an_apply_creates_and_updates():
    """Server-side apply is CREATE or UPDATE by what is there; a webhook's fields are not the applier's."""
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"x": "y"}}}

    async def main(cluster, caller, clock):
        await configure(cluster, MUTATING_WEBHOOKS, everything())
        options = Options(patch_type="apply", field_manager="me")
        request = Request("patch", CONFIG_MAPS, "default", "a", options=options, body=config)
        for _ in range(2):
            made = await cluster.front.handle(request, ME)
            await clock.sleep(seconds(10))
        assert [request["operation"] for _, request in caller.asked] == ["CREATE", "UPDATE"]
        assert caller.asked[0][1]["userInfo"] == {"username": "me"}
        meta = made.object.metadata
        assert meta["labels"] == {"x": "y", "hook": "yes"}
        [entry] = meta["managedFields"]
        assert entry["fieldsV1"] == {"f:metadata": {"f:labels": {"f:x": {}}}}

    story(main, lambda *_: set_label("hook"))


def test_times_do_not_move_while_webhooks_think():
    """However long a review lasts, the validated object is written, and the review is requested once."""

    async def main(cluster, caller, clock):
        await configure(cluster, VALIDATING_WEBHOOKS, everything())

        async def think():
            await clock.sleep(seconds(9))

        caller.say = lambda *_: think()
        body = builders.config_map("a", data={"k": "v"})
        create = Request("create", CONFIG_MAPS, "default", options=Options(field_manager="me"), body=body)
        made = (await cluster.front.handle(create, ME)).object.json
        assert made["metadata"]["creationTimestamp"] == "2026-03-02T00:00:00Z"
        await clock.sleep(seconds(60))
        patch_ = Request(
            "patch",
            CONFIG_MAPS,
            "default",
            "a",
            options=Options(field_manager="you"),
            body={"data": {"k": "w"}},
        )
        await cluster.front.handle(patch_, ME)
        assert len(caller.asked) == 2

    story(main)


def test_nothing_is_drawn_twice():
    """A name that is generated under review is the one that the webhooks received."""

    async def main(cluster, caller, _clock):
        await configure(cluster, MUTATING_WEBHOOKS, everything())
        await configure(cluster, VALIDATING_WEBHOOKS, everything("b.x.y"))
        made = await cluster.create(CONFIG_MAPS, {"metadata": {"generateName": "c-"}}, **WHERE)
        (_, before), (_, after) = caller.asked
        assert "name" not in before
        assert after["name"] == after["object"]["metadata"]["name"] == made.metadata.name
        assert after["object"]["metadata"]["uid"] == made.metadata.uid

    story(main, lambda name, _: set_label("a") if name[0] == "z" else None)


def test_what_follows_from_a_delete_is_not_reviewed():
    """Dependents and the contents of a namespace go with it, as the server itself takes them away."""

    async def main(cluster, caller, _clock):
        await cluster.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="shop")
        await configure(cluster, VALIDATING_WEBHOOKS, everything())
        await cluster.delete(NAMESPACES, "shop")
        reported = [(request["resource"]["resource"], request["operation"]) for _, request in caller.asked]
        assert reported == [("namespaces", "DELETE")]
        assert not (await cluster.list(CONFIG_MAPS, namespace="shop")).items

    story(main)


def test_a_namespace_has_a_label_with_its_name():
    """So that a selector can leave namespaces out by name, those of the system, too."""

    async def main(cluster, caller, _clock):
        selector = {
            "matchExpressions": [
                {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}
            ]
        }
        await configure(cluster, VALIDATING_WEBHOOKS, everything(namespaceSelector=selector))
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), namespace="kube-system")
        assert caller.asked == []
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        assert caller.names == ["a.x.y"]

    story(main)


def test_an_object_that_never_rests():
    """A patch whose object changes under each review ends with a Conflict and not never."""

    async def main(cluster, caller, _clock):
        await cluster.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        await configure(cluster, VALIDATING_WEBHOOKS, everything())
        store, count = cluster.rest.store, [0]

        def meddle(*_):
            count[0] += 1
            old = store.get(CONFIG_MAPS, ("default", "a")).json
            store.put(CONFIG_MAPS, ("default", "a"), {**old, "data": {"n": str(count[0])}})

        caller.say = meddle
        with pytest.raises(ApiError, match="the object has been modified"):
            await cluster.patch(CONFIG_MAPS, "a", {"metadata": {"labels": {"x": "y"}}}, **WHERE)

    story(main)
