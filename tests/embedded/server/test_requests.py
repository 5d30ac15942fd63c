"""The server's answers to single requests, without a Kubernetes client."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import socket

import aiohttp
import pytest
from tests.cluster.served import TOKEN, served

from kubetide.embedded.apiserver.http import Identities, Rule, User
from kubetide.objects.kinds import CONFIG_MAPS
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.testing import builders

CONFIG = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
NOT_FOUND = "404 page not found\n"


class Answer:
    def __init__(self, response, body):
        self.code, self.headers, self.body = response.status, response.headers, body

    @property
    def json(self):
        return json.loads(self.body)


def ask(*requests, token=TOKEN, before=None, identities=None):
    """Send requests ``(method, path, body, headers)`` one after the other and return the last answer."""

    async def main(clock):
        async with served(clock, identities=identities) as (cluster, server, connection):
            if before is not None:
                await before(cluster)
            session = aiohttp.ClientSession(
                connector=make_connector(ssl=connection.tls()), auto_decompress=False
            )
            async with session:
                for method, path, *more in requests:
                    body, headers = (*more, None, None)[:2]
                    data = json.dumps(body) if isinstance(body, dict | list) else body
                    data = io.BytesIO(data.encode()) if data else None
                    sent = {
                        "Content-Type": "application/json",
                        "Accept-Encoding": "identity",
                        **(headers or {}),
                    }
                    if token:
                        sent["Authorization"] = f"Bearer {token}"
                    async with session.request(method, server.url + path, data=data, headers=sent) as got:
                        answer = Answer(got, await got.read())
            return answer

    return run_real(main)


def config(name, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more}


async def many(cluster):
    for number in range(1200):
        body = builders.config_map(f"c{number:04}", data={"k": "v" * 100})
        await cluster.create(CONFIG_MAPS, body, namespace="default")


@pytest.mark.parametrize(
    ("request_", "code", "reason", "text"),
    [
        (("GET", f"{CONFIG}/none"), 404, "NotFound", 'configmaps "none" not found'),
        (("POST", CONFIG, "{"), 400, "BadRequest", "json parse error"),
        (
            ("POST", CONFIG, "x", {"Content-Type": "text/plain"}),
            415,
            "UnsupportedMediaType",
            "application/json",
        ),
        (
            ("PATCH", f"{CONFIG}/a", {}, {"Content-Type": "text/x"}),
            415,
            "UnsupportedMediaType",
            "415",
        ),
        (
            ("GET", CONFIG, None, {"Accept": "image/png"}),
            406,
            "NotAcceptable",
            "only the following media types",
        ),
        (("POST", CONFIG, "x" * 3_200_000), 413, "RequestEntityTooLarge", "limit is 3145728"),
        (("PUT", CONFIG, {}), 405, "MethodNotAllowed", "does not allow this method"),
        (("GET", f"{CONFIG}?labelSelector=%3D"), 400, "BadRequest", ""),
        (("GET", f"{CONFIG}?resourceVersion=99999999"), 504, "Timeout", "Too large resource version"),
        (("POST", f"{CONFIG}?dryRun=Some", config("a")), 422, "Invalid", "dryRun"),
        (("GET", f"{CONFIG}?watch=1&sendInitialEvents=true"), 422, "Invalid", "NotOlderThan"),
    ],
)
def test_refusals(request_, code, reason, text):
    """A request that cannot be served is refused with a Status that says why."""
    answer = ask(request_)
    assert (answer.code, answer.json["kind"], answer.json["reason"]) == (code, "Status", reason)
    assert text in answer.json["message"]


@pytest.mark.parametrize("path", ["/", "/none", "/apis/none", "/apis/none/v1", "/api/v2"])
def test_paths_that_name_nothing(path):
    """A path that nothing is served at is answered as kube-apiserver's router does, with plain text."""
    answer = ask(("GET", path))
    assert (answer.code, answer.body.decode()) == (404, NOT_FOUND)


@pytest.mark.parametrize(
    "path", ["/apis/apps/v9", "/api/v1/gadgets", "/apis/apps/v1/pods", f"{CONFIG}/a/b", f"{CONFIG}/a/b/c"]
)
def test_resources_that_are_not_served(path):
    """Below a group that is served, what is not there is denied with a Status."""
    answer = ask(("GET", path))
    assert (answer.code, answer.json["reason"]) == (404, "NotFound")
    assert answer.json["message"] == "the server could not find the requested resource"


@pytest.mark.parametrize("path", ["/version", "/apis", "/apis/apps", "/api/v1", "/apis/apps/v1"])
def test_a_slash_at_the_end_means_nothing(path):
    """Client libraries that end the paths of discovery with a slash get the same answer."""
    assert ask(("GET", f"{path}/")).body == ask(("GET", path)).body


def test_a_binding_names_its_pod():
    """A Binding that is sent to the collection ``bindings`` binds the pod of its name."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    bindings = "/api/v1/namespaces/default/bindings"
    body = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    nameless = {"metadata": {}, "target": {"kind": "Node", "name": "n"}}

    make, bind = ("POST", "/api/v1/namespaces/default/pods", pod), ("POST", bindings, body)
    bound = ask(make, bind)
    assert (bound.code, bound.json["status"]) == (201, "Success")
    read = ask(make, bind, ("GET", "/api/v1/namespaces/default/pods/p"))
    assert read.json["spec"]["nodeName"] == "n"
    again = ask(make, bind, bind)
    assert (again.code, again.json["reason"]) == (409, "Conflict")
    refused = ask(("POST", bindings, nameless))
    assert (refused.code, refused.json["message"]) == (400, "Name parameter required.")
    assert ask(("GET", bindings)).code == 405


def test_stopping_closes_connections_that_clients_hold():
    """The server hangs up on a client that holds its connection and does not answer the close of TLS."""

    async def main(clock):
        async with served(clock) as (_, server, connection):
            port = int(server.url.rpartition(":")[2])
            raw = await asyncio.to_thread(socket.create_connection, ("127.0.0.1", port))
            held = await asyncio.to_thread(
                connection.tls().wrap_socket, raw, server_hostname="127.0.0.1", suppress_ragged_eofs=True
            )
            await asyncio.to_thread(held.sendall, b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
            assert (await asyncio.to_thread(held.recv, 15)) == b"HTTP/1.1 200 OK"
        return held

    with run_real(main) as held:
        held.settimeout(5)
        with contextlib.suppress(ConnectionResetError):
            while held.recv(65536):
                pass


def test_who_asks_must_be_known():
    """No token and a wrong token are 401; health and version are for everybody."""
    assert ask(("GET", CONFIG), token="").json["reason"] == "Unauthorized"
    assert ask(("GET", CONFIG), token="wrong").code == 401
    for path in ("/livez", "/readyz", "/version"):
        assert ask(("GET", path), token="").code == 200


def test_an_allow_list_holds():
    """A user who may only read one namespace's ConfigMaps is refused all else in the words of RBAC."""
    rule = Rule(verbs=("get", "list"), groups=("",), resources=("configmaps",), namespaces=("default",))
    who = Identities({"t": User("viewer", (), (rule,))})
    assert ask(("GET", CONFIG), token="t", identities=who).code == 200
    refused = ask(("GET", "/api/v1/pods"), token="t", identities=who)
    assert refused.code == 403
    assert refused.json["message"] == (
        'pods is forbidden: User "viewer" cannot list resource "pods" in API group "" at the cluster scope'
    )
    review = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for verb, allowed in (("get", True), ("delete", False)):
        asked = {"namespace": "default", "verb": verb, "resource": "configmaps"}
        answer = ask(("POST", review, {"spec": {"resourceAttributes": asked}}), token="t", identities=who)
        assert (answer.code, answer.json["status"]["allowed"]) == (201, allowed)


def test_field_validation():
    """An unknown and a repeated field are refused, warned of or let pass, as fieldValidation says."""
    body = '{"metadata":{"name":"a","labelz":{}},"data":{"k":"1","k":"2"}}'
    strict = ask(("POST", f"{CONFIG}?fieldValidation=Strict", body))
    assert strict.code == 400
    assert strict.json["message"] == (
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: '
        'duplicate field "data.k", unknown field "metadata.labelz"'
    )
    warned = ask(("POST", CONFIG, body))
    assert warned.code == 201
    assert warned.headers.getall("Warning") == [
        '299 - "duplicate field \\"data.k\\""',
        '299 - "unknown field \\"metadata.labelz\\""',
    ]
    assert "Warning" not in ask(("POST", f"{CONFIG}?fieldValidation=Ignore", body)).headers


def test_every_field_of_the_api_is_known():
    """Strict validation lets fields pass that nothing here reads, also those of inlined and nested types."""
    probe = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 5}
    container = {"name": "c", "image": "i", "livenessProbe": probe, "securityContext": {"runAsUser": 1}}
    volume = {"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [container], "volumes": [volume]}}
    path = "/api/v1/namespaces/default/pods?fieldValidation=Strict"
    assert ask(("POST", path, pod)).code == 201
    probe["httpGet"]["pfad"] = "/"
    assert (
        'unknown field "spec.containers[0].livenessProbe.httpGet.pfad"'
        in ask(("POST", path, pod)).json["message"]
    )


def test_dry_run_stores_nothing():
    """dryRun=All answers with the object and stores nothing."""
    answer = ask(("POST", f"{CONFIG}?dryRun=All", config("a")))
    assert (answer.code, answer.json["metadata"]["name"]) == (201, "a")
    assert ask(("POST", f"{CONFIG}?dryRun=All", config("a")), ("GET", f"{CONFIG}/a")).code == 404


def test_a_deletion_at_once_is_a_status():
    """A deletion that takes effect at once is answered with a Status that names the object."""
    answer = ask(("POST", CONFIG, config("a")), ("DELETE", f"{CONFIG}/a"))
    assert answer.json["status"] == "Success"
    assert answer.json["details"]["name"] == "a"
    assert answer.json["details"]["kind"] == "configmaps"


def test_long_lists_are_streamed_whole():
    """A list of many pages is one JSON object, with and without gzip, and its items do not repeat their type."""
    plain = ask(("GET", CONFIG), before=many)
    items = plain.json["items"]
    assert [item["metadata"]["name"] for item in items] == [f"c{number:04}" for number in range(1200)]
    assert "kind" not in items[0]
    assert (plain.json["kind"], "Content-Encoding" in plain.headers) == ("ConfigMapList", False)
    packed = ask(("GET", CONFIG, None, {"Accept-Encoding": "gzip"}), before=many)
    assert packed.headers["Content-Encoding"] == "gzip"
    assert len(packed.body) < len(plain.body) / 4
    assert len(json.loads(gzip.decompress(packed.body))["items"]) == 1200


def test_a_table_has_a_cell_for_each_column():
    """A list requested as a Table has the printers' columns and the metadata of each object."""
    deployment = builders.deployment("web", replicas=3)
    table = ask(("POST", DEPLOYMENTS, deployment), ("GET", DEPLOYMENTS, None, {"Accept": TABLE})).json
    names = [column["name"] for column in table["columnDefinitions"]]
    assert names[:5] == ["Name", "Ready", "Up-to-date", "Available", "Age"]
    (row,) = table["rows"]
    assert len(row["cells"]) == len(names)
    assert row["cells"][:2] == ["web", "0/3"]
    assert row["object"]["kind"] == "PartialObjectMetadata"


@pytest.mark.parametrize("form", ["legacy", "aggregated"])
def test_discovery_lists_every_kind(form):
    """Both forms of discovery name the same resources, with their subresources."""
    if form == "legacy":
        resources = ask(("GET", "/apis/apps/v1")).json["resources"]
        found = {item["name"]: item["kind"] for item in resources}
    else:
        accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        answer = ask(("GET", "/apis", None, {"Accept": accept}))
        assert answer.headers["Content-Type"] == accept.partition(",")[0]
        (apps,) = [group for group in answer.json["items"] if group["metadata"]["name"] == "apps"]
        found = {}
        for item in apps["versions"][0]["resources"]:
            found[item["resource"]] = item["responseKind"]["kind"]
            for sub in item.get("subresources", ()):
                found[f"{item['resource']}/{sub['subresource']}"] = sub["responseKind"]["kind"]
    assert found["deployments"] == found["deployments/status"] == "Deployment"
    assert found["deployments/scale"] == "Scale"


@pytest.mark.parametrize(
    ("agent", "query", "manager"),
    [
        ("kubectl/v1.36.2 (linux/amd64)", "", "kubectl"),
        ("my tool", "", "my tool"),
        ("kubectl/v1.36.2", "?fieldManager=me", "me"),
        ("x" * 200, "", "x" * 128),
    ],
)
def test_who_names_no_field_manager_is_its_user_agent(agent, query, manager):
    """The text before the slash owns the fields, as in upstream's managerOrUserAgent."""
    answer = ask(("POST", CONFIG + query, config("a", data={"k": "v"}), {"User-Agent": agent}))
    (entry,) = answer.json["metadata"]["managedFields"]
    assert (entry["manager"], entry["operation"]) == (manager, "Update")
