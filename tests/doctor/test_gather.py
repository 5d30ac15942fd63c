"""The doctor on an embedded cluster, and on a scenario from its file to the text."""

from __future__ import annotations

import json

import pytest
import yaml
from click.testing import CliRunner
from tests.vertical.custom_kinds import definition

from kubetide.cli.main import cli
from kubetide.doctor import GroupStatus, diagnose
from kubetide.doctor.finding import Finding
from kubetide.doctor.gather import gather, read_statuses
from kubetide.doctor.text import findings_text
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.nodes.facts.priorities import PRIORITIES_KEY, PRIORITY_MAP, PriorityMap
from kubetide.nodes.memory import GroupLearned, Learned, TimeTaken
from kubetide.nodes.settings import Settings
from kubetide.nodes.templates.keeping import CONFIG_MAP, DATA_KEY, learned_document
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    HPAS,
    LEASES,
    NAMESPACES,
    PDBS,
    POD_TEMPLATES,
    PROVISIONING_REQUESTS,
    STORED_KINDS,
    VPAS,
)
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.errors import CloudError, Forbidden
from kubetide.runtime.timing.clock import run_virtual
from kubetide.testing import builders
from kubetide.units.time import Instant, parse_rfc3339, seconds
from kubetide.vertical.recommender.settings import Settings as RecommenderSettings

START = parse_rfc3339("2026-03-02T08:00:00Z")
STATUS = """
autoscalerStatus: Running
nodeGroups:
- name: spot
  health: {status: Healthy, cloudProviderTarget: 3, minSize: 0, maxSize: 3}
  scaleUp: {status: Backoff, backoffInfo: {errorCode: STOCKOUT, errorMessage: none left}}
"""


class Refusing:
    """A cluster that does not let Pods be listed."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def list(self, kind, **selectors):
        if kind.plural == "pods":
            raise Forbidden("pods is forbidden")
        return await self._inner.list(kind, **selectors)


def gathered(cluster, clock, cloud=None):
    return gather(cluster, clock.now, cloud=cloud, settings=Settings(), recommender=RecommenderSettings())


async def prepared(clock, *more):
    cluster = EmbeddedCluster(Store((*STORED_KINDS, *more)), clock, seed=1)
    await cluster.create(NAMESPACES, builders.namespace("shop"))
    await cluster.create(DEPLOYMENTS, builders.deployment("cart", replicas=2), namespace="shop")
    await cluster.create(HPAS, builders.hpa("cart", "cart"), namespace="shop")
    await cluster.create(HPAS, builders.hpa("again", "cart"), namespace="shop")
    await cluster.create(HPAS, builders.hpa("lost", "gone"), namespace="shop")
    custom = {"scaleTargetRef": {"apiVersion": "example.com/v1", "kind": "Fleet", "name": "f"}}
    body = builders.hpa("custom", "x")
    body["spec"] |= custom
    await cluster.create(HPAS, body, namespace="shop")
    await cluster.create(PDBS, builders.pdb("never", {"app": "cart"}, max_unavailable=0), namespace="shop")
    held = builders.config_map("cluster-autoscaler-status", data={"status": STATUS})
    await cluster.create(CONFIG_MAPS, held, namespace="kube-system")
    await cluster.create(LEASES, builders.lease("cluster-autoscaler", holder="a"), namespace="kube-system")
    return cluster


def test_an_embedded_cluster_is_read_and_diagnosed():
    """All that is wrong with a small cluster is found through the Cluster port, and nothing is written."""

    async def main(clock):
        cluster = await prepared(clock)
        version = (await cluster.list(HPAS)).resource_version
        snapshot = await gathered(cluster, clock)
        assert (await cluster.list(HPAS)).resource_version == version
        return snapshot

    snapshot = run_virtual(main, start=START)
    assert [one.metadata.name for one in snapshot.leases] == ["cluster-autoscaler"]
    assert snapshot.missing_scales == {("Fleet", "shop", "f")}
    found = [(one.severity, one.check, one.object) for one in diagnose(snapshot)]
    assert found == [
        ("critical", "hpa-target", "HorizontalPodAutoscaler shop/custom"),
        ("critical", "hpa-target", "HorizontalPodAutoscaler shop/lost"),
        ("critical", "hpa-shared-target", "Deployment shop/cart"),
        ("critical", "group-backoff", "node group spot"),
        ("warning", "budgets", "PodDisruptionBudget shop/never"),
        ("info", "group-maximum", "node group spot"),
    ]


def test_the_time_is_asked_once_the_objects_are_read():
    """Only an answer tells the server's clock; ages are of whole seconds."""
    asked = []

    class Watched(Refusing):
        async def list(self, kind, **selectors):
            asked.append(kind.plural)
            return await self._inner.list(kind, **selectors)

    async def main(clock):
        def now():
            assert "pods" in asked
            return Instant(START + 700_000_000)

        cluster = Watched(await prepared(clock))
        return await gather(cluster, now, cloud=None, settings=Settings(), recommender=RecommenderSettings())

    assert run_virtual(main, start=START).now == START


def test_what_may_not_be_read_is_reported():
    """A kind that is refused is a finding with the server's words; the others are checked."""

    async def main(clock):
        cluster = Refusing(await prepared(clock))
        return await gathered(cluster, clock)

    found = diagnose(run_virtual(main, start=START))
    assert [one.seen for one in found if one.check == "unread"] == [
        "they could not be read: pods is forbidden"
    ]
    assert "hpa-target" in {one.check for one in found}


def test_an_object_that_cannot_be_read_is_reported():
    """The finding names the object, the field and the fix; the others of its kind are checked."""

    async def main(clock):
        cluster = EmbeddedCluster(Store((*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS)), clock, seed=1)
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, definition(VPAS))
        for name, spec in {"odd": {"updatePolicy": "Auto"}, "good": {}}.items():
            await cluster.create(
                VPAS.untyped, {"metadata": {"name": name}, "spec": spec}, namespace="default"
            )
        return await gathered(cluster, clock)

    snapshot = run_virtual(main, start=START)
    assert [one.metadata.name for one in snapshot.vpas] == ["good"]
    [odd] = [one for one in diagnose(snapshot) if one.check == "unread"]
    assert (odd.object, odd.seen, odd.fix) == (
        "verticalpodautoscaler default/odd",
        "it cannot be read: spec.updatePolicy: expected object | null, got str",
        "write that field as its kind has it",
    )


@pytest.mark.parametrize("text", ["", "[", "3", "nodeGroups: {}", "nodeGroups: [3, {health: {}}]"])
def test_a_status_that_cannot_be_read_has_no_groups(text):
    """Whatever the ConfigMap holds, the doctor goes on."""
    assert read_statuses(text) == ()


def test_the_status_document_is_read():
    """Sizes and the backoff's error are those that the document states."""
    assert read_statuses(STATUS) == (GroupStatus("spot", 0, 3, 3, "Backoff", "STOCKOUT", "none left"),)
    counts = {"registered": {"total": 2}, "unregistered": 3, "longUnregistered": 1}
    grows = {"status": "InProgress", "lastTransitionTime": "2026-03-02T08:00:00Z"}
    group = {"name": "g", "health": {"nodeCounts": counts}, "scaleUp": grows}
    [found] = read_statuses(yaml.safe_dump({"nodeGroups": [group]}))
    assert (found.since, found.registered, found.unregistered) == (START, 2, 4)
    grows["lastTransitionTime"] = "yesterday"
    [found] = read_statuses(yaml.safe_dump({"nodeGroups": [group]}))
    assert (found.scale_up, found.since) == ("InProgress", None)


def test_a_group_that_grows_for_the_first_time_grows_since_its_last_increase():
    """The status document has no time of it, so the event counts, as upstream words it; of another group none does."""
    grows = {"scaleUp": {"status": "InProgress", "lastTransitionTime": None}}
    groups = [{"name": "g", **grows}, {"name": "other", **grows}]
    said = {
        "07:50:00": "Scale-up: setting group g size to 1 instead of 0 (max: 9)",
        "07:52:00": "Scale-up: group g size set to 1 instead of 0 (max: 9)",
        "07:55:00": "Scale-up: something else",
    }

    async def main(clock):
        cluster = await prepared(clock)
        for number, (at, message) in enumerate(said.items()):
            body = {
                "metadata": {"name": f"e{number}"},
                "involvedObject": {"namespace": "kube-system"},
                "reason": "ScaledUpGroup",
                "message": message,
                "lastTimestamp": f"2026-03-02T{at}Z",
            }
            await cluster.create(EVENTS, body, namespace="kube-system")
        patch = {"data": {"status": yaml.safe_dump({"nodeGroups": groups})}}
        await cluster.patch(CONFIG_MAPS, "cluster-autoscaler-status", patch, namespace="kube-system")
        return await gathered(cluster, clock)

    found = run_virtual(main, start=START).group_statuses
    assert [(one.name, one.since) for one in found] == [
        ("g", parse_rfc3339("2026-03-02T07:52:00Z")),
        ("other", None),
    ]


def test_what_nodes_have_shown_and_what_waits_for_capacity_is_read():
    """The ConfigMap of the node loop, and PodTemplates only where something names them."""
    learned = Learned(groups={"g": GroupLearned(joins=2, starts=(TimeTaken(START, seconds(70)),))})
    request = {
        "metadata": {"name": "train"},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "worker"}, "count": 3}],
        },
    }
    template = {"metadata": {"name": "worker"}, "template": {"spec": builders.pod_spec(cpu="1")}}

    async def main(clock):
        cluster = await prepared(clock, PROVISIONING_REQUESTS)
        await cluster.create(POD_TEMPLATES, template, namespace="shop")
        before = await gathered(cluster, clock)
        held = builders.config_map(CONFIG_MAP, data={DATA_KEY: learned_document(learned)})
        await cluster.create(CONFIG_MAPS, held, namespace="kube-system")
        ranked = builders.config_map(PRIORITY_MAP, data={PRIORITIES_KEY: "10: [spot]"})
        await cluster.create(CONFIG_MAPS, ranked, namespace="kube-system")
        await cluster.create(PROVISIONING_REQUESTS, request, namespace="shop")
        return before, await gathered(cluster, clock)

    before, after = run_virtual(main, start=START)
    assert (before.learned, before.pod_templates) == ({}, ())
    assert after.learned == learned.groups
    assert before.priorities == PriorityMap()
    assert after.priorities is not None
    assert after.priorities.priorities == "10: [spot]"
    assert [one.metadata.name for one in (*after.requests, *after.pod_templates)] == ["train", "worker"]


class Scaling(Cloud):
    """A cloud that scales group ``g`` itself, or does not say what it does."""

    name, gpu_label = "own", ""

    def __init__(self, answer):
        self.answer = answer

    async def refresh(self):
        return [NodeGroup(id="g")]

    async def scaling_policies(self):
        if isinstance(self.answer, CloudError):
            raise self.answer
        return self.answer


def test_what_the_cloud_scales_itself_is_asked_once():
    """A cloud that does not say leaves its groups readable."""

    async def main(clock):
        cluster = await prepared(clock)
        known = await gathered(cluster, clock, Scaling({"g": ["schedule night"]}))
        return known, await gathered(cluster, clock, Scaling(CloudError("not allowed")))

    known, refused = run_virtual(main, start=START)
    assert (known.scaling_policies, known.scaling_policies_error) == ({"g": ["schedule night"]}, "")
    assert (refused.scaling_policies, refused.scaling_policies_error) == ({}, "not allowed")
    assert [one.id for one in refused.groups] == ["g"]


def test_the_text_has_each_fix_once_and_the_cost():
    """Findings with the same reason are together; a shared fix is printed once, and prices are added up."""
    found = [
        Finding(
            check="scale-down-blockers",
            severity="warning",
            object=f"Node n{at}",
            seen="pods",
            why="it stays",
            fix="let go",
            cost_per_hour=0.5,
        )
        for at in range(12)
    ]
    text = findings_text(found, "USD")
    assert text.startswith(
        "0 critical, 12 warning, 0 info; 6 USD an hour for nodes that cannot go\n\nWARNING (12)\n"
    )
    assert text.count("fix: let go") == 1
    assert "and 2 more; -o json shows all" in text
    assert findings_text([]) == "nothing found that keeps it from scaling well"


SCENARIO = {
    "name": "sick",
    "start": "2026-03-02T08:00:00Z",
    "duration": "1h",
    "warmUp": "1m",
    "nodeGroups": [{"name": "small", "instanceType": "m5.large", "min": 1, "max": 3, "bootTime": "30s"}],
}


@pytest.mark.slow
def test_a_scenario_file_is_played_and_examined(tmp_path):
    """`doctor SCENARIO` plays the file, and finds what is wrong with its cluster; the exit status says so."""
    bare = builders.pod("lonely", namespace="default")
    huge = builders.deployment("huge", namespace="default", replicas=2, memory="900Gi")
    path = tmp_path / "sick.yaml"
    path.write_text(yaml.safe_dump({**SCENARIO, "manifests": [yaml.safe_dump_all([bare, huge])]}))
    result = CliRunner().invoke(cli, ["doctor", str(path), "--after", "3m", "-o", "json"])
    assert result.exit_code == 1, result.output
    found = {one["check"]: one for one in json.loads(result.stdout)["findings"]}
    assert set(found) == {"no-group", "scale-down-blockers"}
    assert found["no-group"]["object"].endswith("(and 1 like it)")
    assert "default/lonely: NotReplicated" in found["scale-down-blockers"]["seen"]
    # Its group is at the minimum of the scenario: the node would stay anyhow.
    assert "costPerHour" not in found["scale-down-blockers"]


@pytest.mark.slow
def test_a_healthy_scenario_has_exit_status_0(tmp_path):
    """A healthy cluster is reported as such, as text and as YAML, with exit status 0."""
    well = builders.deployment("well", namespace="default", replicas=1)
    path = tmp_path / "well.yaml"
    path.write_text(yaml.safe_dump({**SCENARIO, "name": "well", "manifests": [yaml.safe_dump(well)]}))
    for form, said in (
        ("text", "nothing found that keeps it from scaling well\n"),
        ("yaml", "findings: []\n"),
    ):
        result = CliRunner().invoke(cli, ["doctor", str(path), "--after", "1m", "-o", form])
        assert (result.exit_code, result.stdout) == (0, said)


def test_a_duration_that_cannot_be_read(tmp_path):
    """A wrong --after names the option and what to write."""
    for after, said in (("soon", "'soon' is no duration; write 30m or 2h"), ("-1m", "-1m is negative")):
        result = CliRunner().invoke(cli, ["doctor", "web-shop", "--after", after])
        assert result.exit_code == 2
        assert said in result.output


@pytest.mark.parametrize("groups", ["5", "[{name: a, health: {minSize: abc}}]", "[{name: a, scaleUp: [1]}]"])
def test_a_status_of_another_form_stops_nothing(groups):
    """A status document that another program has spoilt has no groups, and the doctor goes on."""
    assert read_statuses(f"nodeGroups: {groups}") == ()
