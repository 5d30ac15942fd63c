"""The provider ``labels`` shows the nodes of any cluster as groups, and refuses to change them."""

from __future__ import annotations

import asyncio

import pytest
from tests.horizontal.running import START
from tests.loops import run_alone
from tests.nodes.live import MemoryRecorder
from tests.tasks import stop

from kubetide.clouds.catalog import parse_catalog, with_catalog
from kubetide.clouds.common.template import INSTANCE_TYPE, ZONE
from kubetide.clouds.labels import Bounds, LabelsCloud, LabelsConfigError, read_groups
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.controller import NodesController
from kubetide.nodes.explain.answers import explain_pod
from kubetide.nodes.settings import Settings
from kubetide.objects.kinds import NODES, PODS
from kubetide.ports.errors import CloudError
from kubetide.runtime.configuration.config import ConfigError, flag_values, make_config
from kubetide.runtime.guard import Advice, guarded_cloud, guarded_cluster
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import minutes, seconds
from kubetide.watching import Caches

POOL = "cloud.google.com/gke-nodepool"


async def add_node(cluster, name, labels, provider_id=""):
    body = builders.node(name, labels=labels, cpu="2", memory="4Gi")
    if provider_id:
        body["spec"] = {**body.get("spec", {}), "providerID": provider_id}
    else:
        body.get("spec", {}).pop("providerID", None)
    status = {**body.pop("status", {}), "conditions": [{"type": "Ready", "status": "True"}]}
    await cluster.create(NODES, body)
    await cluster.patch(NODES, name, {"status": status}, subresource="status")


def play(story):
    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock, seed=1)
        await add_node(cluster, "a-1", {POOL: "a"}, "gce://a-1")
        await add_node(cluster, "a-2", {POOL: "a"})
        await add_node(cluster, "b-1", {"team": "b", POOL: "shared"})
        await add_node(cluster, "alone", {})
        return await story(cluster, clock)

    return run_virtual(main, start=START)


def test_groups_are_what_a_label_says_with_the_bounds_that_are_known():
    """The first label of a node counts; a group with bounds is there without nodes; a node without a label is in none."""
    config = read_groups("", ["team", POOL], ["1:3:a", "2:9:spare"])

    async def story(cluster, clock):
        cloud = LabelsCloud(cluster, clock, config)
        with pytest.raises(CloudError, match="have not been listed yet"):
            await cloud.refresh()
        async with cloud.open():
            await clock.sleep(seconds(1))
            found = {group.id: group for group in await cloud.refresh()}
            with pytest.raises(CloudError, match="read only"):
                await cloud.increase_size("a", 1)
            with pytest.raises(CloudError, match="read only"):
                await cloud.delete_nodes("a", ["gce://a-1"])
            with pytest.raises(CloudError, match="read only"):
                await cloud.decrease_target_size("a", 1)
        return found

    found = play(story)
    assert {name: (one.min_size, one.target_size, one.max_size) for name, one in found.items()} == {
        "a": (1, 2, 3),
        "b": (0, 1, 1000),
        "spare": (2, 0, 9),
    }
    assert [one.provider_id for one in found["a"].instances] == ["gce://a-1", "node:///a-2"]
    # Its name may be written wrongly.
    assert found["spare"].template_error.endswith("and the group has none; there are nodes of a, b")


def test_a_catalogue_prices_groups_whose_nodes_are_of_one_type():
    """The type is that of the labels; a group of several types has no price, as nobody knows what comes next."""

    async def story(cluster, clock):
        for name, group, kind, zone in (
            ("c-1", "c", "m5.large", "z-1"),
            ("c-2", "c", "m5.large", "z-1"),
            ("d-1", "d", "m5.large", "z-1"),
            ("d-2", "d", "m5.large", "z-2"),
            ("e-1", "e", "m5.large", "z-1"),
            ("e-2", "e", "c5.large", "z-1"),
        ):
            await add_node(cluster, name, {POOL: group, INSTANCE_TYPE: kind, ZONE: zone})
        catalog = parse_catalog("type,zone,price_per_hour\nm5.large,,0.1\nm5.large,z-1,0.2\n", "prices.csv")
        async with LabelsCloud(cluster, clock, read_groups("")).open() as inner:
            cloud = with_catalog(inner, catalog)
            await clock.sleep(seconds(1))
            return {group.id: group.price_per_hour for group in await cloud.refresh()}

    found = play(story)
    assert {name: found[name] for name in "acde"} == {"a": None, "c": 0.2, "d": 0.1, "e": None}


def test_advice_and_explain_work_on_a_cluster_without_a_cloud():
    """A pod that fits nowhere leads to the advice to grow its pool, one that fits in no pool to the reason."""

    async def story(cluster, clock):
        recorder = MemoryRecorder(100)
        cloud = LabelsCloud(cluster, clock, read_groups("", (), ["1:3:a", "0:1:shared"]))
        for name, cpu in (
            ("large", "1900m"),
            ("larger", "1900m"),
            ("huge", "64"),
            ("full-1", "1"),
            ("full-2", "1"),
        ):
            body = builders.pod(name, cpu=cpu)
            if name.startswith("full"):
                body["spec"]["nodeName"] = f"a-{name[-1]}"
            await cluster.create(PODS, body, namespace="default")
            condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
            if not name.startswith("full"):
                status = {"phase": "Pending", "conditions": [condition]}
                await cluster.patch(PODS, name, {"status": status}, namespace="default", subresource="status")
        await cluster.create(PODS, _on("b-1"), namespace="default")
        await cluster.create(PODS, _on("alone"), namespace="default")
        async with cloud.open():
            await clock.sleep(seconds(1))
            seen = guarded_cluster(cluster, Advice())
            caches = Caches(seen, clock)
            loop = NodesController(
                seen,
                guarded_cloud(cloud, Advice()),
                clock,
                recorder,
                None,
                Settings(advises=True),
                seed=1,
                caches=caches,
            )
            task = asyncio.create_task(run_alone(loop, caches, clock))
            await clock.sleep(minutes(1))
            said = explain_pod(loop.state, ("default", "huge"), clock.now())
            await stop(task)
        assert loop.health.failures == 0, loop.health.last_failure
        return recorder.reasons, said

    reasons, said = play(story)
    advised = {
        (one.subject, one.fields["size"], one.fields["to"])
        for one in reasons
        if one.code == "IncreaseAdvised"
    }
    assert advised == {("a", 2, 3)}
    verdicts = {one.group: one for one in said.groups}
    assert set(verdicts) == {"a", "shared"}


def _on(node):
    body = builders.pod(f"full-{node}", cpu="1500m")
    body["spec"]["nodeName"] = node
    return body


def test_a_file_and_flags_say_bounds_and_prices(tmp_path):
    """Flags hold over the file, whose price stays; ``*`` is for every other group."""
    file = tmp_path / "groups.yaml"
    file.write_text("labels: [pool]\ngroups:\n  a: {min: 1, max: 5, price: 0.2}\n  '*': {max: 7}\n")
    config = read_groups(str(file), (), ["2:6:a"])
    assert config.labels == ("pool",)
    assert config.bounds_of("a") == Bounds(2, 6, 0.2)
    assert config.bounds_of("other") == Bounds(0, 7)


@pytest.mark.parametrize(
    ("content", "bounds", "words"),
    [
        ("", ["1:a"], "nodes: '1:a' cannot be read; write <min>:<max>:<group>"),
        ("", ["5:2:a"], "group a: min 5, max 2"),
        ("groups: {a: {maximum: 3}}", [], "groups.yaml: Object contains unknown field"),
        ("groups: [", [], "groups.yaml: while parsing"),
        ("groups: {a: {price: .nan}}", [], "group a: its price nan is none; give 0 or more"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path, content, bounds, words):
    file = tmp_path / "groups.yaml"
    file.write_text(content)
    with pytest.raises(LabelsConfigError) as found:
        read_groups(str(file), (), bounds)
    assert words in str(found.value)


def test_it_only_advises_on_nodes():
    """A run that acts on nodes needs the provider of its cloud; beside it the pods' loop may act."""
    labels = ["--cloud-provider=labels", "--nodes=1:3:a", "--nodes=0:5:b"]
    config = make_config([("--", flag_values([*labels, "--controllers=horizontal,nodes"]))])
    assert config.run.nodes == ("1:3:a", "0:5:b")
    with pytest.raises(ConfigError, match="labels is read only"):
        make_config([("--", flag_values([*labels, "--controllers=nodes", "--act"]))])
    mine = ["--cloud-provider=mine", "--nodes=1:3:a"]
    assert make_config([("--", flag_values(mine))]).run.nodes == ("1:3:a",)
    with pytest.raises(ConfigError, match="node-group-label is for cloud-provider=labels"):
        make_config([("--", flag_values([*mine, "--node-group-label=team"]))])
