"""The roles as a real API server reads them: what they allow the account of the chart, and what they do not."""

from __future__ import annotations

import subprocess
from typing import NamedTuple

import pytest
from tests.deploy.conftest import ACT, ALL, CAPACITY, IDLEST, UI
from tests.deploy.requests import ACCOUNT, GROUPS, Request
from tools.manifests import render
from tools.plane.build import find

from kubetide.cluster import HttpCluster
from kubetide.objects.kinds import Kind
from kubetide.runtime.permissions import roles
from kubetide.runtime.timing.clock import run_real
from kubetide.units.time import milliseconds, seconds

REVIEWS = Kind(
    "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", dict, namespaced=False
)


class Asked(NamedTuple):
    request: Request
    acting: bool
    value: str


def examples():
    """Yield a request for each verb on each resource that the table grants."""
    for role in roles():
        namespace = "kube-system" if role.kind == "Role" else "shop"
        for grant in role.grants:
            for resource in grant.resources:
                named = resource.replace("*/scale", "rollouts/scale").replace("*", "pods/requests")
                group = "argoproj.io" if grant.group == "*" else grant.group
                for verb in grant.verbs:
                    for name in grant.names or ("web",):
                        yield Asked(Request(verb, group, named, namespace, name), grant.acting, grant.value)


# Beside what is granted: other objects, other namespaces, other verbs.
NEVER = [
    Request("get", "", "secrets", "kube-system", "token"),
    Request("list", "", "secrets"),
    Request("update", "apps", "deployments", "shop", "web"),
    Request("patch", "apps", "deployments", "shop", "web"),
    Request("delete", "", "pods", "shop", "web-0"),
    Request("delete", "", "nodes", "", "node-0"),
    Request("patch", "", "configmaps", "kube-system", "coredns"),
    Request("create", "", "configmaps", "shop"),
    Request("patch", "coordination.k8s.io", "leases", "kube-system", "kube-scheduler"),
    Request("patch", "coordination.k8s.io", "leases", "shop", "kubetide"),
    Request("patch", "autoscaling", "horizontalpodautoscalers", "shop", "web"),
    Request("create", "", "pods/exec", "shop", "web-0"),
]


def review(request):
    resource, _, subresource = request.resource.partition("/")
    attributes = {
        "verb": request.verb,
        "group": request.group,
        "resource": resource,
        "subresource": subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return {"spec": {"user": ACCOUNT, "groups": list(GROUPS), "resourceAttributes": attributes}}


@pytest.mark.parametrize(
    "flags",
    [(), (ACT,), (ACT, IDLEST), (ACT, CAPACITY), (UI,)],
    ids=["advice", "acting", "idlest-first", "capacity-apis", "ui"],
)
def test_the_account_may_do_that_and_no_more(helm, quiet_plane, tmp_path, flags):
    """RBAC allows each request of the table, no write without act, what a value gives with that value, and nothing else."""
    acting = ACT in flags
    file = tmp_path / "all.yaml"
    file.write_text(render(helm, *ALL, *flags))
    kubectl = [find("kubectl"), "--kubeconfig", quiet_plane.kubeconfig]
    subprocess.run([*kubectl, "apply", "-f", file], check=True, capture_output=True)

    async def main(clock):
        async with HttpCluster(quiet_plane.connection, clock) as client:

            async def allowed(request):
                return (await client.create(REVIEWS, review(request)))["status"]["allowed"]

            granted = {
                one.request
                for one in examples()
                if (acting or not one.acting) and (not one.value or any(one.value in flag for flag in flags))
            }
            held_back = {one.request for one in examples()} - granted
            # The authorizer reads the roles through caches of its own.
            deadline = clock.monotonic() + seconds(120)
            while True:
                refused = {one for one in sorted(granted) if not await allowed(one)}
                too_much = {one for one in (*sorted(held_back), *NEVER) if await allowed(one)}
                if not refused and not too_much:
                    return
                assert clock.monotonic() < deadline, (refused, too_much)
                await clock.sleep(milliseconds(100))

    try:
        run_real(main)
    finally:
        subprocess.run([*kubectl, "delete", "--wait=false", "-f", file], check=True, capture_output=True)
