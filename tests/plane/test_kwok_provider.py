"""``--cloud-provider=kwok`` on a real control plane with kwok: nodes come, go, survive a restart, and cannot be had."""

from __future__ import annotations

import asyncio
import re
import subprocess
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.plane.kwok import skip_without_kwok
from tests.plane.test_whole_loop import LEASE_TIMES, TO_BE_DELETED, is_drained, once
from tests.plane.towns import ACCOUNT, MEDIUM, ROOT, SOON, kubetide_run, requests_of, town
from tools.plane.build import find

from kubetide.embedded.cloud import CloudFaults, Window
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, NODES, PDBS, PODS
from kubetide.ports.errors import Forbidden, Invalid
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders

pytestmark = pytest.mark.slow

KEY = "kwok-nodegroup"
KWOK = ("--cloud-provider=kwok",)
FLAGS = ("--act", "--controllers=nodes", *SOON)
CONFIG = {
    "readNodesFrom": "configmap",
    "nodegroups": {"fromNodeLabelKey": KEY},
    "configmap": {"name": "kwok-provider-templates"},
    "nodes": {"skipTaint": True},
}
POLICY = "no-small-nodes"
SHORT = "there is no capacity for small nodes"


@pytest.fixture(autouse=True)
def _built(monkeypatch):
    skip_without_kwok()
    monkeypatch.setenv("POD_NAMESPACE", "kube-system")


@pytest.fixture
def roles_of_kwok(audited, tmp_path):
    """The rights that docs/cloud-kwok.md names for the provider, for the account of the chart."""
    page = (ROOT / "docs" / "cloud-kwok.md").read_text(encoding="utf-8")
    (text,) = [one for one in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "ClusterRole" in one]
    roles = list(yaml.safe_load_all(text))
    _, _, namespace, name = ACCOUNT.split(":")
    for role in list(roles):
        binding = {**role, "kind": f"{role['kind']}Binding"}
        del binding["rules"]
        reference = {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role["kind"],
            "name": role["metadata"]["name"],
        }
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": name}
        roles.append({**binding, "roleRef": reference, "subjects": [subject]})
    file = Path(tmp_path) / "kwok-roles.yaml"
    file.write_text(yaml.safe_dump_all(roles))
    kubectl = [find("kubectl"), "--kubeconfig", audited.kubeconfig]
    subprocess.run([*kubectl, "apply", "-f", file], check=True, capture_output=True)
    yield
    subprocess.run([*kubectl, "delete", "-f", file], check=True, capture_output=True)


def template(group, cpu, most):
    body = builders.node(group, cpu=cpu, memory="8Gi", labels={KEY: group})
    body["metadata"]["annotations"] = {"cluster-autoscaler.kwok.nodegroup/max-count": str(most)}
    return body


@asynccontextmanager
async def kwok_town(audited, clock, folder):
    """A town of kwok without machines, whose ConfigMaps describe small and large nodes."""
    maps = {
        "kwok-provider-config": {"config": yaml.safe_dump(CONFIG)},
        "kwok-provider-templates": {
            "templates": yaml.safe_dump_all([template("small", "2", 8), template("large", "4", 8)])
        },
    }
    async with town(audited, clock, folder, by_kwok=True) as place:
        for name, data in maps.items():
            body = {"metadata": {"name": name}, "data": data}
            await place.cluster.create(CONFIG_MAPS, body, namespace="kube-system")
        try:
            yield place
        finally:
            for name in maps:
                await place.cluster.delete(CONFIG_MAPS, name, namespace="kube-system")


def nodes_of(place, group):
    return [name for _, name in place.nodes.objects if name.startswith(f"{group}-")]


async def deploy(place, replicas):
    web = builders.deployment("web", replicas=replicas, cpu="600m")
    await place.cluster.create(DEPLOYMENTS, web, namespace=place.home)


async def scale(place, replicas):
    await place.cluster.replace_scale(DEPLOYMENTS, "web", replicas, namespace=place.home)


@pytest.mark.usefixtures("roles_of_the_chart", "roles_of_kwok")
def test_from_zero_and_back_with_a_restart_in_the_middle_of_a_drain(audited, tmp_path):
    """Pods call nodes into being; fewer pods, and nodes are drained within the budget, also by one who finds it half done.

    With the roles of the chart and those of the page and no others.
    """

    async def run(clock):
        async with kwok_town(audited, clock, tmp_path) as place:
            cluster, home = place.cluster, place.home
            await deploy(place, 9)
            # An eviction that its client does not wait for blocks a budget of one for two minutes (DisruptedPods).
            await cluster.create(PDBS, builders.pdb("web", {"app": "web"}, max_unavailable=2), namespace=home)
            flags = (*FLAGS, "--expander=least-nodes", *LEASE_TIMES)
            async with kubetide_run(place, ACCOUNT, *flags, name="first", cloud=KWOK) as first:
                await place.until("nine pods run", lambda: len(place.running("web")) == 9)
                bought = set(nodes_of(place, "large"))
                assert len(bought) == 2, "six pods fit a large node"
                assert nodes_of(place, "small") == []
                # Two pods stay on each node, so that one must be drained: those with the highest cost of deletion.
                patch = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "1000"}}}
                for node in bought:
                    for pod in place.pods_on(node)[:2]:
                        await cluster.patch(PODS, pod.metadata.name, patch, namespace=home)
                place.pods.on_change(once(first.process.kill, lambda _, __, pod: is_drained(place, pod)))
                await scale(place, 4)
                await place.until("it was killed in a drain", lambda: first.process.returncode is not None)
                assert len(place.nodes.objects) == 2, "no node is lost with the process"
            fewest = [4]
            place.pods.on_change(lambda *_: fewest.append(min(fewest[-1], len(place.running("web")))))
            async with kubetide_run(place, ACCOUNT, *flags, name="second", cloud=KWOK):
                await place.until("one node is left", lambda: len(place.nodes.objects) == 1)
                await place.until("four pods run", lambda: len(place.running("web")) == 4)
                assert fewest[-1] >= 2, "the budget lets two be evicted"
                await scale(place, 0)
                await place.until("no node is left", lambda: not place.nodes.objects)
            asked = requests_of(audited, ACCOUNT)
            assert [one for one in asked if one.code == 403] == []
            made = [one for one in asked if (one.verb, one.resource) == ("create", "nodes")]
            deleted = [one.name for one in asked if (one.verb, one.resource) == ("delete", "nodes")]
            assert len(made) == len(deleted) == len(set(deleted)) == 2
            assert set(deleted) == bought

    run_real(run)


def test_another_group_grows_where_the_first_one_cannot(audited, tmp_path):
    """Nodes of the better group are refused by the API server: it backs off, and the other group takes the pods."""

    async def run(clock):
        async with kwok_town(audited, clock, tmp_path) as place:
            async with out_of_small_nodes(place):
                await deploy(place, 2)
                flags = (*FLAGS, "--expander=least-waste")
                async with kubetide_run(place, "kwok-buyer", *flags, cloud=KWOK) as program:
                    await place.until("both pods run", lambda: len(place.running("web")) == 2)
                    assert program.said(SHORT)
                assert nodes_of(place, "small") == []
                assert len(nodes_of(place, "large")) == 1
            refused = [
                one
                for one in requests_of(audited, "kwok-buyer")
                if (one.verb, one.resource) == ("create", "nodes") and one.code >= 400
            ]
            assert len(refused) == 1, "it was tried once and not again while it backs off"

    run_real(run)


@asynccontextmanager
async def out_of_small_nodes(place):
    """Let the API server refuse every new node of the group ``small``."""
    spec = {
        "matchConstraints": {
            "resourceRules": [
                {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["nodes"], "operations": ["CREATE"]}
            ]
        },
        "validations": [
            {"expression": f"object.metadata.?labels['{KEY}'].orValue('') != 'small'", "message": SHORT}
        ],
    }
    policy = {"kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": spec}
    binding = {
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": POLICY},
        "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
    }
    file = place.folder / "policy.yaml"
    objects = [{"apiVersion": "admissionregistration.k8s.io/v1", **one} for one in (policy, binding)]
    file.write_text(yaml.safe_dump_all(objects))
    kubectl = [find("kubectl"), "--kubeconfig", place.plane.kubeconfig]
    await asyncio.to_thread(subprocess.run, [*kubectl, "apply", "-f", file], check=True, capture_output=True)
    try:
        while not await is_refused(place):
            await place.pause()
        yield
    finally:
        await asyncio.to_thread(
            subprocess.run, [*kubectl, "delete", "-f", file], check=True, capture_output=True
        )


async def is_refused(place):
    """Whether the API server has taken the policy up."""
    try:
        await place.cluster.create(NODES, builders.node("probe", labels={KEY: "small"}))
    except (Forbidden, Invalid):
        return True
    await place.cluster.delete(NODES, "probe")
    return False


def test_machines_that_never_join_are_given_back(audited, tmp_path):
    """kwok plays the nodes that join; a machine that becomes no node is removed, and another group's takes the pods."""
    mute = replace(MEDIUM, name="mute", min_size=0)
    roomy = replace(MEDIUM, name="roomy", min_size=0, instance_type="m5.xlarge")

    async def run(clock):
        faults = CloudFaults(boot_failures=(Window(clock.now(), group="mute"),))
        async with town(audited, clock, tmp_path, mute, roomy, by_kwok=True, faults=faults) as place:
            await deploy(place, 2)
            flags = (*FLAGS, "--expander=least-waste", "--max-node-provision-time=8s")
            async with kubetide_run(place, "kwok-waiter", *flags):
                await place.until("both pods run", lambda: len(place.running("web")) == 2)
                await place.until(
                    "nothing is left of the mute group", lambda: place.ledger.deleted("mute") != []
                )
            assert place.ledger.increased("mute") == len(place.ledger.deleted("mute")) == 1
            assert place.ledger.increased("roomy") == 1
            assert place.nodes_with_taint(TO_BE_DELETED) == []

    run_real(run)
