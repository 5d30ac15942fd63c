"""The provider ``kwok``: its ConfigMaps, the nodes that it makes, and the battery on a cluster with kubelets."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import pytest
import yaml

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.kwok.config import KwokConfig, parse_config
from kubetide.clouds.kwok.factory import connect
from kubetide.clouds.kwok.templates import parse_templates, read_groups
from kubetide.clouds.registry import CloudContext, CloudFlags
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.embedded.kubelet import KubeletPool
from kubetide.objects.kinds import CONFIG_MAPS, NODES, PODS
from kubetide.ports.errors import CloudError
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.testing.cloud_battery import CASES, CloudUnderTest
from kubetide.units.time import minutes, parse_rfc3339, seconds
from kubetide.watching import Informer

START = parse_rfc3339("2026-03-02T00:00:00Z")
KEY = "kwok-nodegroup"
SIZES = "cluster-autoscaler.kwok.nodegroup/"
CONFIG = {
    "apiVersion": "v1alpha1",
    "readNodesFrom": "configmap",
    "nodegroups": {"fromNodeLabelKey": KEY},
    "configmap": {"name": "kwok-provider-templates"},
    "nodes": {"gpuConfig": {"gpuLabelKey": "gpu", "availableGPUTypes": {"nvidia-tesla-t4": {}, "a100": {}}}},
}


def template(group, *, least=0, most=3, name="", **extra):
    body = builders.node(name or f"{group}-template", labels={KEY: group, "disk": "ssd"}, extra=extra or None)
    body["metadata"]["annotations"] = {f"{SIZES}min-count": str(least), f"{SIZES}max-count": str(most)}
    return body


def config_of(**changes):
    return parse_config(yaml.safe_dump({**CONFIG, **changes}), "here")


async def put(cluster, name, key, content):
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    await cluster.create(
        CONFIG_MAPS, {"metadata": {"name": name}, "data": {key: text}}, namespace="kube-system"
    )


@asynccontextmanager
async def a_cluster(clock, templates, config=None):
    """Yield a cluster with the ConfigMaps, whose kubelets take new nodes on."""
    cluster = EmbeddedCluster(Store(), clock, seed=1)
    await put(cluster, "kwok-provider-config", "config", config or CONFIG)
    await put(cluster, "kwok-provider-templates", "templates", {"apiVersion": "v1", "items": templates})
    pods, nodes = Informer(cluster, PODS, clock), Informer(cluster, NODES, clock)
    pool = KubeletPool(cluster, clock, pods=pods, nodes=nodes, seed=1)
    tasks = [asyncio.create_task(one) for one in (pods.run(), nodes.run(), pool.run(), kwok(cluster, clock))]
    yield cluster
    for task in tasks:
        task.cancel()


async def kwok(cluster, clock):
    """Say of each new node that it is Ready, after a while, as kwok does."""
    while True:
        await clock.sleep(seconds(20))
        for node in (await cluster.list(NODES)).items:
            if not node.status.conditions:
                ready = {
                    "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]}
                }
                await cluster.patch(NODES, node.metadata.name, ready, subresource="status")


def opened(cluster, clock):
    environment = {"POD_NAMESPACE": "kube-system"}
    return connect(CloudContext(CloudFlags(), clock, environment, cluster))


def play(story, templates, config=None):
    async def main(clock):
        async with a_cluster(clock, templates, config) as cluster:
            return await story(cluster, clock)

    return run_virtual(main, start=START)


async def grown(cloud, clock, group, delta):
    await clock.sleep(seconds(1))
    await cloud.increase_size(group, delta)
    await clock.sleep(seconds(30))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_kwok_passes_the_battery(case):
    """Groups of templates do what the Cloud port promises."""

    async def story(cluster, clock):
        async with opened(cluster, clock) as cloud:
            await clock.sleep(seconds(1))
            await cloud.increase_size("kept", 1)
            await case(CloudUnderTest(cloud, clock, group="empty", kept="kept", patience=minutes(5)))

    play(story, [template("empty"), template("kept", least=1, most=2)])


def test_a_new_node_is_its_template_with_what_kwok_and_the_loop_know_it_by():
    """Name, annotations, provider id, taint and version are upstream's; what was of the template's machine is not there."""
    machine = {
        "spec": {
            "podCIDR": "10.0.0.0/24",
            "taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}],
        },
        "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]},
    }

    async def story(cluster, clock):
        async with opened(cluster, clock) as cloud:
            await grown(cloud, clock, "workers", 1)
            (group,) = await cloud.refresh()
            return group, (await cluster.list(NODES.untyped)).items, (cloud.gpu_label, cloud.gpu_types)

    group, (raw,), gpus = play(story, [template("workers", name="sample", **machine)])
    name = raw["metadata"]["name"]
    assert name.startswith("workers-")
    assert len(name) == len("workers-") + 5
    notes = raw["metadata"]["annotations"]
    assert notes["kwok.x-k8s.io/node"] == "fake"
    assert notes["cluster-autoscaler.kwok.nodegroup/name"] == "workers"
    assert notes["metrics.k8s.io/resource-metrics-path"] == f"/metrics/nodes/{name}/metrics/resource"
    assert raw["metadata"]["labels"] == {KEY: "workers", "disk": "ssd", "kubernetes.io/hostname": name}
    assert raw["spec"]["providerID"] == f"kwok:{name}"
    assert raw["spec"]["taints"] == [{"key": "kwok-provider", "value": "true", "effect": "NoSchedule"}]
    assert "podCIDR" not in raw["spec"]
    assert "10.0.0.9" not in str(raw)
    assert raw["status"]["nodeInfo"]["kubeletVersion"] == "fake"
    assert [one.provider_id for one in group.instances] == [f"kwok:{name}"]
    assert (
        group.template.source
        == "node template: ConfigMap kube-system/kwok-provider-templates, templates, node sample"
    )
    assert [one.key for one in group.template.node.spec.taints] == ["kwok-provider"]
    assert gpus == ("gpu", ("a100", "nvidia-tesla-t4"))


def test_nodes_of_the_cluster_are_templates_and_those_of_kwok_only_where_there_is_no_other():
    """With readNodesFrom: cluster a live node is the template; a group keeps its nodes when its real ones are deleted."""
    config = {**CONFIG, "readNodesFrom": "cluster", "nodes": {"skipTaint": True}}

    async def story(cluster, clock):
        await cluster.create(NODES, template("workers", name="real"))
        async with opened(cluster, clock) as cloud:
            await grown(cloud, clock, "workers", 2)
            before = await cloud.refresh()
        async with opened(cluster, clock) as cloud:
            await clock.sleep(seconds(1))
            again = await cloud.refresh()
        await cluster.delete(NODES, "real")
        async with opened(cluster, clock) as cloud:
            await clock.sleep(seconds(1))
            return before, again, await cloud.refresh()

    before, again, without = play(story, [], config)
    assert before == again
    assert before[0].target_size == 2, "the real node is none of kwok's"
    assert before[0].template.source == "node template: cluster, node real"
    assert before[0].template.node.spec.taints is None
    assert (without[0].target_size, without[0].max_size) == (2, 3)
    assert without[0].template.node.status == before[0].template.node.status


def test_a_node_of_the_cluster_without_size_is_no_template():
    """A node that has just joined stops neither its group, whose other nodes serve, nor the other groups."""
    config = {**CONFIG, "readNodesFrom": "cluster"}
    blank = {"status": {"capacity": {}, "allocatable": {}}}

    async def story(cluster, clock):
        for name, group in (("a", "workers"), ("b", "others")):
            body = template(group, name=name)
            await cluster.create(NODES, {**body, **blank})
        await cluster.create(NODES, template("workers", name="c"))
        async with opened(cluster, clock) as cloud:
            await clock.sleep(seconds(1))
            return await cloud.refresh()

    (group,) = play(story, [], config)
    assert (group.id, group.template.source) == ("workers", "node template: cluster, node c")


def test_a_node_that_somebody_else_deletes_leaves_its_group():
    """The size of a group is that of its nodes, also right after a write that the cache has not seen."""

    async def story(cluster, clock):
        async with opened(cluster, clock) as cloud:
            await grown(cloud, clock, "workers", 3)
            (group,) = await cloud.refresh()
            deleted = group.instances[0].provider_id
            await cluster.delete(NODES, deleted.removeprefix("kwok:"))
            await clock.sleep(seconds(1))
            (group,) = await cloud.refresh()
            assert (group.target_size, deleted in {one.provider_id for one in group.instances}) == (2, False)
            with pytest.raises(CloudError, match="no node that kwok plays in node group workers"):
                await cloud.delete_nodes("workers", [deleted])

    play(story, [template("workers")])


def test_what_the_api_server_refuses_is_reported_and_what_was_made_counts():
    """A node whose name is taken is made under another name; nodes that could be made stay when another cannot."""

    async def story(cluster, clock):
        create, made = cluster.create, []

        async def refuse_the_second(kind, body, **more):
            made.append(body["metadata"]["name"])
            if len(made) == 2:
                body = {**body, "metadata": {**body["metadata"], "labels": {"no label": "x"}}}
            return await create(kind, body, **more)

        cluster.create = refuse_the_second
        async with opened(cluster, clock) as cloud:
            await clock.sleep(seconds(1))
            with pytest.raises(CloudError, match=r"workers: 3 more nodes: .*no label") as refused:
                await cloud.increase_size("workers", 3)
            assert (refused.value.error_code, refused.value.cause) == ("Invalid", "Other")
            (group,) = await cloud.refresh()
            assert group.target_size == len(group.instances) == 2

    play(story, [template("workers")])


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"readNodesFrom": "git"}, "readNodesFrom is 'git'"),
        ({"nodegroups": {}}, "set one of them"),
        ({"nodegroups": {"fromNodeLabelKey": "a", "fromNodeAnnotationKey": "b"}}, "set one of them"),
        ({"nodegroups": "a"}, "nodegroups is 'a', not a map"),
        ({"configmap": {}}, "needs configmap.name"),
        ({"nodes": {"skipTaint": "yes"}}, "nodes.skipTaint is 'yes', not true or false"),
        ({"nodes": {"gpuConfig": {"gpuLabelKey": "gpu"}}}, "needs both gpuLabelKey and availableGPUTypes"),
    ],
)
def test_a_bad_configuration_names_the_key(changes, text):
    """Each key that cannot be used is named, with what it has."""
    with pytest.raises(CloudConfigError, match=text) as refused:
        config_of(**changes)
    assert str(refused.value).startswith("here: ")


@pytest.mark.parametrize(
    ("annotations", "text"),
    [
        ({"min-count": "many"}, "min-count: .*many"),
        ({"min-count": "3", "max-count": "2"}, "0 <= min <= max"),
        ({"desired-count": "9", "max-count": "2"}, "desired-count 9 is not between 0 and 2"),
    ],
)
def test_bad_bounds_name_the_node(annotations, text):
    """Bounds that cannot be read are those of a node of a ConfigMap, and both are named."""
    body = template("workers", name="sample")
    body["metadata"]["annotations"] = {SIZES + key: value for key, value in annotations.items()}
    with pytest.raises(CloudConfigError, match=text) as refused:
        read_groups([body], config_of(), "here")
    assert str(refused.value).startswith("here, node sample: ")


def test_the_case_of_keys_does_not_count():
    """As for upstream's decoder; a key as it is written comes first."""
    found = parse_config(
        "READNODESFROM: cluster\nnodeGroups: {FromNodeLabelKey: a, fromNodeLabelKey: b}", "here"
    )
    assert (found.source, found.group_label) == ("cluster", "b")


def test_gpu_types_may_be_an_empty_map():
    """Then the label counts, with whatever value."""
    found = config_of(nodes={"gpuConfig": {"gpuLabelKey": "gpu", "availableGPUTypes": {}}})
    assert (found.gpu_label, found.gpu_types) == ("gpu", ())


def test_bounds_are_upstreams_unless_they_are_set():
    """A template without annotations has a group of 0 to 200; a node without the key is none."""
    body = builders.node("sample", labels={KEY: "workers"})
    (group,) = read_groups([body, builders.node("other")], config_of(), "here")
    assert (group.name, group.min_size, group.max_size) == ("workers", 0, 200)
    empty = {SIZES + key: "" for key in ("min-count", "max-count", "desired-count")}
    body["metadata"]["annotations"] = {**empty, f"{SIZES}name": "named"}
    (group,) = read_groups([body], config_of(), "here")
    assert (group.name, group.min_size, group.max_size) == ("named", 0, 200)
    by_note = KwokConfig("configmap", "x", group_annotation=KEY)
    body["metadata"]["annotations"] = {KEY: "by-note"}
    assert [one.name for one in read_groups([body], by_note, "here")] == ["by-note"]
    with pytest.raises(CloudConfigError, match=f"no node has the annotation {KEY}"):
        read_groups([builders.node("other")], by_note, "here")


def test_templates_are_a_list_or_documents():
    """Both forms give the same nodes; other objects are passed over, and a node without a name is named by its place."""
    one, two = template("a"), template("b")
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [one, two]})
    assert (
        parse_templates(listed, "here")
        == parse_templates(yaml.safe_dump_all([one, two]), "here")
        == [one, two]
    )
    assert parse_templates(yaml.safe_dump_all([one, {"kind": "Pod", "metadata": {"name": "x"}}]), "here") == [
        one
    ]
    with pytest.raises(CloudConfigError, match="item 2 is not a Node"):
        parse_templates(yaml.safe_dump_all([one, {"kind": "Node"}]), "here")
    with pytest.raises(CloudConfigError, match="no YAML"):
        parse_templates("a: [", "here")


def test_templates_are_read_as_kubernetes_reads_yaml():
    """A date and a time of day are texts there; a node that was written out by hand did not start the program."""
    text = """
    metadata: {name: sample, labels: {kwok-nodegroup: workers, built: 2026-03-02, at: 12:30}}
    spec: {taints: [{key: a, effect: NoSchedule, timeAdded: 2026-03-02T00:00:00Z}]}
    status: {allocatable: {cpu: 2, memory: 4Gi, pods: 32}}
    """
    (group,) = read_groups(parse_templates(text, "here"), config_of(), "here")
    assert group.body["metadata"]["labels"] == {KEY: "workers", "built": "2026-03-02", "at": "12:30"}
    assert group.body["spec"]["taints"][0]["timeAdded"] == "2026-03-02T00:00:00Z"
    assert (
        parse_config("readNodesFrom: cluster\nnodegroups: {fromNodeLabelKey: 12:30}", "here").group_label
        == "12:30"
    )


def test_a_missing_config_map_is_named():
    """The error for a missing ConfigMap gives its name, and says how to name another one."""

    async def main(clock):
        async with opened(EmbeddedCluster(Store(), clock), clock):
            raise AssertionError("it was opened")

    with pytest.raises(
        CloudConfigError, match="ConfigMap kube-system/kwok-provider-config, which does not exist"
    ):
        run_virtual(main, start=START)
