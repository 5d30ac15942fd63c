"""Admission webhooks over real sockets: what they are shown, what they change, and what they deny."""

from __future__ import annotations

import asyncio

import pytest
from tests.cluster.webhook_bench import CONFIG, KINDS, WHERE, bench

from kubetide.embedded.controllers import PodIndex, ReplicaSetController
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HPAS,
    NAMESPACES,
    PODS,
    REPLICA_SETS,
    VALIDATING_WEBHOOKS,
)
from kubetide.ports.errors import AlreadyExists, ApiError
from kubetide.testing import builders
from kubetide.watching import Informer


def test_pods_of_a_deployment_are_mutated():
    """A webhook changes what a ReplicaSet's controller creates, though that never leaves the process."""

    async def main(b):
        await b.configure("mutating", "label", "pods", operations=["CREATE"])
        sets, pods = Informer(b.cluster, REPLICA_SETS, b.clock), Informer(b.cluster, PODS, b.clock)
        controller = ReplicaSetController(
            b.cluster, b.clock, 1, replica_sets=sets, pods=pods, pod_index=PodIndex(pods)
        )
        tasks = [asyncio.ensure_future(part.run()) for part in (sets, pods)]
        await sets.synced()
        await pods.synced()
        tasks.append(asyncio.ensure_future(controller.run()))
        body = builders.replica_set("web", replicas=2)
        await b.client.create(REPLICA_SETS, body, **WHERE)
        async with asyncio.timeout(300):
            while len(found := (await b.client.list(PODS, **WHERE)).items) < 2:
                await b.clock.sleep(0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert [pod.metadata.labels for pod in found] == [{"hook": "yes"}] * 2
        for request in b.hooks.requests("label"):
            assert "uid" not in request["object"]["metadata"]
            assert request["userInfo"]["username"] == "system:kube-controller-manager"

    bench(main)


@pytest.mark.parametrize("way", ["https", "in process"])
def test_a_validating_webhook_denies(way):
    """An object that a webhook denies is not written, over either way in."""

    async def main(b):
        client = b.client if way == "https" else b.cluster
        await b.configure("validating", "deny403", "configmaps", operations=["CREATE"])
        with pytest.raises(
            ApiError, match=r'^admission webhook "a\.hooks\.example\.com" denied the request: no way$'
        ) as caught:
            await client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        assert (caught.value.code, caught.value.reason) == (403, "Forbidden")
        assert not (await client.list(CONFIG_MAPS, **WHERE)).items
        await client.delete(VALIDATING_WEBHOOKS, "hooks")
        await client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)  # takes effect at once

    bench(main)


def test_what_a_validating_webhook_sees():
    """It sees the object as it is about to be written: named, with a uid, as mutating webhooks left it."""

    async def main(b):
        await b.configure("mutating", "label", "configmaps")
        await b.configure("validating", "allow", "configmaps")
        body = {"metadata": {"generateName": "c-"}, "data": {"a": "b"}}
        _, made, _ = await b.ask("POST", f"{CONFIG}?fieldManager=me", body)
        [before], [request] = b.hooks.requests("label"), b.hooks.requests("allow")
        # A generated name is not known to mutating webhooks yet, nor is a uid.
        assert "name" not in before
        assert not {"name", "uid", "creationTimestamp"} & before["object"]["metadata"].keys()
        assert request["object"] == {
            **made,
            "metadata": {key: value for key, value in made["metadata"].items() if key != "resourceVersion"},
        }
        assert request["name"] == made["metadata"]["name"]
        assert made["metadata"]["labels"] == {"hook": "yes"}
        assert request["options"] == {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
        }
        assert request["userInfo"] == {
            "username": "admin",
            "groups": ["system:masters", "system:authenticated"],
        }
        assert (request["operation"], request["oldObject"], request["dryRun"]) == ("CREATE", None, False)

    bench(main)


def test_operations_and_subresources():
    """Each write is reported as upstream reports it; an eviction is no DELETE, a collection names no object."""

    async def main(b):
        await b.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await b.client.create(DEPLOYMENTS, builders.deployment("web"), namespace="shop")
        await b.configure("validating", "allow", "*/*", group="*", versions=["*"])
        pods = "/api/v1/namespaces/shop/pods"
        merge = "application/merge-patch+json"
        for request in (
            ("POST", pods, builders.pod("p")),
            ("PATCH", f"{pods}/p", {"metadata": {"labels": {"x": "y"}}}, merge),
            ("PATCH", f"{pods}/p", {"metadata": {"labels": {"x": "y"}}}, merge),
            ("PATCH", f"{pods}/p/status", {"status": {"message": "hi"}}, merge),
            ("POST", f"{pods}/p/binding", {"target": {"kind": "Node", "name": "n"}}),
            ("POST", f"{pods}/p/eviction", {"metadata": {"name": "p"}}),
            ("DELETE", f"{pods}/p", {"gracePeriodSeconds": 0}),
            ("POST", pods, builders.pod("q")),
            ("DELETE", pods, {"gracePeriodSeconds": 0}),
            (
                "PATCH",
                "/apis/apps/v1/namespaces/shop/deployments/web/scale",
                {"spec": {"replicas": 3}},
                merge,
            ),
            ("GET", pods),
            ("PATCH", "/api/v1/namespaces/shop", {"metadata": {"labels": {"x": "y"}}}, merge),
        ):
            code, answer, _ = await b.ask(*request)
            assert code < 300, answer
        reported = [
            (
                request["operation"],
                request["resource"]["resource"],
                request.get("subResource", ""),
                request.get("name", ""),
                request["kind"]["kind"],
                request["options"]["kind"],
            )
            for request in b.hooks.requests("allow")
        ]
        assert reported == [
            ("CREATE", "pods", "", "p", "Pod", "CreateOptions"),
            ("UPDATE", "pods", "", "p", "Pod", "UpdateOptions"),
            ("UPDATE", "pods", "", "p", "Pod", "UpdateOptions"),  # though it changes nothing
            ("UPDATE", "pods", "status", "p", "Pod", "UpdateOptions"),
            ("CREATE", "pods", "binding", "p", "Binding", "CreateOptions"),
            ("CREATE", "pods", "eviction", "p", "Eviction", "CreateOptions"),
            ("DELETE", "pods", "", "p", "Pod", "DeleteOptions"),
            ("CREATE", "pods", "", "q", "Pod", "CreateOptions"),
            ("DELETE", "pods", "", "", "Pod", "DeleteOptions"),
            ("UPDATE", "deployments", "scale", "web", "Scale", "UpdateOptions"),
            ("UPDATE", "namespaces", "", "shop", "Namespace", "UpdateOptions"),
        ]
        scale = b.hooks.requests("allow")[-2]
        assert (scale["object"]["spec"], scale["kind"]["group"]) == ({"replicas": 3}, "autoscaling")
        assert (await b.client.get_scale(DEPLOYMENTS, "web", namespace="shop")).spec.replicas == 3

    bench(main)


def test_a_denied_delete_leaves_the_object():
    """DELETE shows the object that would go; denied, alone or in a collection, it stays."""

    async def main(b):
        await b.client.create(CONFIG_MAPS, builders.config_map("a", data={"k": "v"}), **WHERE)
        await b.configure("validating", "deny", "configmaps", operations=["DELETE"])
        for path in (f"{CONFIG}/a", CONFIG):
            code, answer, _ = await b.ask("DELETE", path)
            assert (code, answer["message"]) == (
                400,
                'admission webhook "a.hooks.example.com" denied the request: no way',
            )
        assert (await b.client.get(CONFIG_MAPS, "a", **WHERE)).data == {"k": "v"}
        for request in b.hooks.requests("deny"):
            assert (request["object"], request["oldObject"]["data"]) == (None, {"k": "v"})

    bench(main)


def test_dry_run_and_warnings():
    """A dry run is reported as one and writes nothing; what webhooks warn of comes with refusals, too."""

    async def main(b):
        await b.configure("mutating", "warn", "configmaps")
        code, _, warnings = await b.ask("POST", f"{CONFIG}?dryRun=All", {"metadata": {"name": "a"}, "x": 1})
        assert (code, warnings[:3]) == (
            201,
            ['299 - "unknown field \\"x\\""', '299 - "first \\"one\\""', '299 - "second"'],
        )
        [request] = b.hooks.requests("warn")
        assert request["dryRun"] is True
        assert request["options"]["dryRun"] == ["All"]
        assert not (await b.client.list(CONFIG_MAPS, **WHERE)).items
        await b.configure("validating", "denywarn", "configmaps")
        code, _, warnings = await b.ask("POST", CONFIG, {"metadata": {"name": "a"}})
        assert (code, warnings[-1]) == (400, '299 - "careful"')

    bench(main)


def test_webhooks_are_asked_before_an_existing_name_is_refused():
    """A creation of an existing object is reviewed, and then answered with AlreadyExists."""

    async def main(b):
        await b.client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        for stage in KINDS:
            await b.configure(stage, f"allow/{stage}", "configmaps")
        with pytest.raises(AlreadyExists):
            await b.client.create(CONFIG_MAPS, builders.config_map("a"), **WHERE)
        assert [path for path, _ in b.hooks.asked] == ["allow/mutating", "allow/validating"]

    bench(main)


def test_equivalent_versions():
    """A webhook for autoscaling/v2 sees writes in v1 as v2, with the original request; Exact does not."""

    async def main(b):
        for name, policy in (("a", "Equivalent"), ("b", "Exact")):
            await b.configure(
                "mutating",
                f"label/{policy}",
                "horizontalpodautoscalers",
                called=name,
                group="autoscaling",
                versions=["v2"],
                matchPolicy=policy,
            )
        spec = {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 3,
            "targetCPUUtilizationPercentage": 60,
        }
        path = "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers"
        code, made, _ = await b.ask("POST", path, {"metadata": {"name": "web"}, "spec": spec})
        assert (code, made["apiVersion"], made["metadata"]["labels"]) == (
            201,
            "autoscaling/v1",
            {"hook": "yes"},
        )
        [request] = b.hooks.requests("label/Equivalent")
        assert request["object"]["apiVersion"] == "autoscaling/v2"
        assert request["object"]["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 60
        assert (request["kind"]["version"], request["resource"]["version"]) == ("v2", "v2")
        assert (request["requestKind"]["version"], request["requestResource"]["version"]) == ("v1", "v1")
        assert b.hooks.requests("label/Exact") == []
        stored = await b.client.get(HPAS, "web", **WHERE)
        assert stored.spec.metrics[0].resource.target.average_utilization == 60

    bench(main)


def test_configurations_are_shown_to_no_webhook():
    """A webhook that denies everything can still be deleted."""

    async def main(b):
        await b.configure("validating", "deny", "*", group="*", versions=["*"])
        with pytest.raises(ApiError, match="denied"):
            await b.client.create(NAMESPACES, {"metadata": {"name": "shop"}})
        await b.client.patch(VALIDATING_WEBHOOKS, "hooks", {"metadata": {"labels": {"a": "b"}}})
        await b.client.delete(VALIDATING_WEBHOOKS, "hooks")
        await b.client.create(NAMESPACES, {"metadata": {"name": "shop"}})

    bench(main)
