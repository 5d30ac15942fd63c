"""Objects that applications bring beside workloads, and the users that a request acts as."""

from __future__ import annotations

import asyncio
import base64
from asyncio.subprocess import PIPE, STDOUT

import pytest
import yaml
from tests.cluster.served import TOKEN, served
from tests.docs.inert_samples import INERT_SAMPLES
from tests.embedded.server.test_requests import ask
from tools.plane.build import find

from kubetide.embedded.apiserver.http import Identities, Rule, User
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.apiserver.tables import row_of
from kubetide.objects.kinds import KINDS, PODS
from kubetide.runtime.timing.clock import run_real
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CAN_I_DELETE = {
    "spec": {"resourceAttributes": {"namespace": "default", "verb": "delete", "resource": "pods"}}
}
READ_PODS = Rule(verbs=("get", "list"), groups=("",), resources=("pods",))


def test_nobody_may_do_nothing():
    """A request that impersonates has the rights of whom it acts as, and not those of who sends it."""
    nobody = {"Impersonate-User": "nobody"}
    assert ask(("POST", REVIEW, CAN_I_DELETE)).json["status"] == {"allowed": True}
    assert ask(("POST", REVIEW, CAN_I_DELETE, nobody)).json["status"]["allowed"] is False
    refused = ask(("GET", "/api/v1/pods", None, nobody))
    assert (refused.code, refused.json["message"]) == (
        403,
        'pods is forbidden: User "nobody" cannot list resource "pods" in API group "" at the cluster scope',
    )


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Impersonate-User": "boss", "Impersonate-Group": "system:masters"}, 200),
        ({"Impersonate-User": "viewer"}, 200),
        ({"Impersonate-User": "system:serviceaccount:shop:web"}, 403),
        ({"Impersonate-Group": "system:masters"}, 400),
        ({"Impersonate-User": "viewer", "Impersonate-Uid": "1"}, 400),
        ({"Impersonate-User": "viewer", "Impersonate-Extra-Scopes": "x"}, 400),
    ],
)
def test_whom_a_request_acts_as(headers, code):
    """Groups count, a user with a token has its rules, and what cannot be honoured is refused."""
    who = Identities({TOKEN: User("admin", ("system:masters",)), "t": User("viewer", (), (READ_PODS,))})
    assert ask(("GET", "/api/v1/pods", None, headers), identities=who).code == code


def test_only_who_may_impersonate_does():
    """A user whom no rule allows it is refused in the words of RBAC."""
    who = Identities({"t": User("viewer", (), (READ_PODS,))})
    refused = ask(("GET", "/api/v1/pods", None, {"Impersonate-User": "boss"}), token="t", identities=who)
    assert (refused.code, refused.json["message"]) == (
        403,
        'users "boss" is forbidden: User "viewer" cannot impersonate resource "users" in API group "" at the cluster scope',
    )


async def _with_pod(cluster):
    await cluster.create(PODS, builders.pod("web"), namespace="default")


@pytest.mark.parametrize(
    ("method", "what"), [("GET", "log"), ("POST", "exec"), ("GET", "attach"), ("POST", "portforward")]
)
def test_a_pod_has_no_container_to_ask(method, what):
    """Logs, exec and similar requests say that nothing runs in a pod, or that the pod does not exist."""
    path = "/api/v1/namespaces/default/pods"
    answer = ask((method, f"{path}/web/{what}"), before=_with_pod)
    assert (answer.code, answer.json["reason"]) == (400, "BadRequest")
    assert (
        f"pod default/web runs no container: the embedded cluster plays the lives of pods, without their programs, so there is nothing for {what}"
        in answer.json["message"]
    )
    assert ask((method, f"{path}/other/{what}"), before=_with_pod).code == 404


@pytest.mark.parametrize("media_type", ["application/json", "application/vnd.kubernetes.protobuf"])
def test_no_tokens_of_accounts(media_type):
    """`kubectl create token` is answered as by a server without them, in whatever form it asks."""
    path = "/api/v1/namespaces/default/serviceaccounts/web/token"
    answer = ask(("POST", path, {"spec": {}}, {"Content-Type": media_type}))
    assert (answer.code, answer.json["message"]) == (404, "the server could not find the requested resource")


def test_a_secret_takes_texts():
    """``stringData`` is moved into ``data``, as bytes in base64."""
    path = "/api/v1/namespaces/default/secrets"
    body = {"metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"b": "y"}}
    made = ask(("POST", path, body)).json
    assert made["data"] == {"a": "eA==", "b": base64.b64encode(b"y").decode()}
    assert (made["type"], "stringData" in made) == ("Opaque", False)


ROWS = {
    "Service": ["web", "NodePort", "<none>", "<none>", "80:30080/TCP,53/UDP", "60m", "app=web"],
    "Secret": ["key", "Opaque", 1, "60m"],
    "ServiceAccount": ["web", "60m"],
    "ResourceQuota": ["small", "requests.cpu: 1/4", "limits.cpu: 2/8", "60m"],
    "Ingress": [
        "web",
        "nginx",
        "a.example.com,b.example.com,c.example.com + 1 more...",
        "192.0.2.7",
        "80, 443",
        "60m",
    ],
    "IngressClass": ["nginx (default)", "k8s.io/ingress-nginx", "Tuning.example.com/fast", "60m"],
    "NetworkPolicy": ["closed", "app=web", "60m"],
    "Role": ["reader", "2026-03-02T08:00:00Z"],
    "ClusterRole": ["reader", "2026-03-02T08:00:00Z"],
    "RoleBinding": ["readers", "Role/reader", "60m", "ann", "staff", "shop/web"],
    "ClusterRoleBinding": ["readers", "ClusterRole/reader", "60m", "ann", "staff", "shop/web"],
}


@pytest.mark.parametrize("sample", INERT_SAMPLES, ids=lambda sample: sample["kind"])
def test_rows_are_those_of_kubectl(sample):
    """`kubectl get` shows the cells that a cluster shows."""
    kind = KINDS[sample["apiVersion"], sample["kind"]]
    assert row_of(kind, sample, parse_rfc3339("2026-03-02T09:00:00Z")) == ROWS[sample["kind"]]


SERVICE = """\
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: "system:web"}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
"""


def test_kubectl_works_with_them(tmp_path):
    """An application's manifest is applied twice and changed; cluster-info, logs, exec and --as answer plainly."""
    kubectl = find("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not built (python -m tools.plane build kubectl)")
    config, file = tmp_path / "kubeconfig", tmp_path / "app.yaml"

    async def call(*arguments):
        process = await asyncio.create_subprocess_exec(
            *(kubectl, f"--kubeconfig={config}", f"--cache-dir={tmp_path}", *arguments),
            stdout=PIPE,
            stderr=STDOUT,
        )
        said, _ = await process.communicate()
        return said.decode()

    async def main(clock):
        async with served(clock) as (cluster, server, connection):
            await _with_pod(cluster)
            authority = connection.authority.encode()
            write_kubeconfig(config, kubeconfig(server.url, token=TOKEN, authority=authority))
            file.write_text(SERVICE)
            assert (await call("apply", "-f", file)).count("created") == 2
            assert (await call("apply", "--server-side", "--force-conflicts", "-f", file)).count(
                "applied"
            ) == 2
            file.write_text(SERVICE.replace("{port: 80}", "{port: 80}, {port: 81, name: b}"))
            assert "service/web configured" in await call("apply", "-f", file)
            spec = yaml.safe_load(await call("get", "svc", "web", "-o", "yaml"))["spec"]
            assert [port["targetPort"] for port in spec["ports"]] == [80, 81]
            assert "control plane" in await call("cluster-info")
            assert "runs no container" in await call("logs", "web")
            assert "runs no container" in await call("exec", "web", "--", "ls")
            assert (await call("auth", "can-i", "list", "pods", "--as=nobody")).startswith("no")
            granted = ("create", "clusterrolebinding", "readers", "--clusterrole=system:web", "--user=ann")
            assert "created" in await call(*granted)
            assert (await call("auth", "can-i", "get", "pods", "--as=ann")).strip() == "yes"
            assert (await call("auth", "can-i", "list", "pods", "--as=ann")).startswith("no")
            assert "web" in await call("get", "pod", "web", "--as=ann", "-o", "name")
            assert "Forbidden" in await call("get", "pods", "--as=ann")
            assert (await call("auth", "can-i", "list", "pods")).strip() == "yes"

    run_real(main)
