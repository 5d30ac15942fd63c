"""The server's own series are kube-apiserver's, by name, labels and buckets."""

from __future__ import annotations

import asyncio

import aiohttp
from tests.cluster.served import ADMIN, TOKEN, served

from kubetide.embedded.apiserver.http import Identities, User
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector

COUNTED = ("configmaps", "deployments", "nodes")
CORE = "/api/v1/namespaces/default/configmaps"
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "counted"}}
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"

# (method, path, body, content type)
REQUESTS = (
    ("POST", CORE, CONFIG, "application/json"),
    ("POST", CORE, CONFIG, "application/json"),
    ("POST", f"{CORE}?dryRun=All", {**CONFIG, "metadata": {"name": "dry"}}, "application/json"),
    ("POST", f"{CORE}?dryRun=Some", CONFIG, "application/json"),
    ("GET", f"{CORE}/counted", None, None),
    ("GET", f"{CORE}/missing", None, None),
    ("GET", CORE, None, None),
    ("GET", "/api/v1/configmaps", None, None),
    ("GET", "/api/v1/nodes", None, None),
    ("GET", "/api/v1/nodes/missing", None, None),
    ("GET", f"{CORE}?watch=1&timeoutSeconds=1", None, None),
    ("PATCH", f"{CORE}/counted", {"data": {"a": "b"}}, MERGE),
    ("PATCH", f"{CORE}/counted?fieldManager=m&force=true", CONFIG, APPLY),
    ("PUT", f"{CORE}/counted", CONFIG, "application/json"),
    ("GET", "/apis/apps/v1/namespaces/default/deployments/missing/scale", None, None),
    ("DELETE", f"{CORE}/counted", None, None),
    ("DELETE", f"{CORE}?labelSelector=none%3Dsuch", None, None),
)


def requests_total(text):
    """Return the counts of requests by their labels, of the resources that are counted here."""
    found = {}
    for line in text.splitlines():
        labels, _, value = line.removeprefix("apiserver_request_total").rpartition(" ")
        if line.startswith("apiserver_request_total{") and any(f'"{name}"' in labels for name in COUNTED):
            found[labels] = float(value)
    return found


async def asked(url, token, tls):
    """Send the requests; return what was counted before, what after, and all series."""
    connector = make_connector(ssl=tls)
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def series():
            async with session.get(f"{url}/metrics") as answer:
                assert answer.status == 200
                return await answer.text()

        before = requests_total(await series())
        for method, path, body, kind in REQUESTS:
            more = {"Content-Type": kind} if kind else {}
            async with session.request(method, url + path, json=body, headers=more) as answer:
                await answer.read()
        text = await series()
    after = requests_total(text)
    grown = {labels: count - before.get(labels, 0) for labels, count in after.items()}
    return {labels: count for labels, count in grown.items() if count}, text


def line(code, verb, scope, resource="configmaps", *, dry_run="", group="", subresource=""):
    return (
        f'{{code="{code}",component="apiserver",dry_run="{dry_run}",group="{group}",resource="{resource}",'
        f'scope="{scope}",subresource="{subresource}",verb="{verb}",version="v1"}}'
    )


# As kube-apiserver v1.36.2 counts them.
EXPECTED = {
    line(201, "POST", "resource"): 1,
    line(409, "POST", "resource"): 1,
    line(201, "POST", "resource", dry_run="All"): 1,
    line(422, "POST", "resource", dry_run="invalid"): 1,
    line(200, "GET", "resource"): 1,
    line(404, "GET", "resource"): 1,
    line(200, "LIST", "namespace"): 1,
    line(200, "LIST", "cluster"): 1,
    line(200, "LIST", "cluster", "nodes"): 1,
    line(404, "GET", "resource", "nodes"): 1,
    line(200, "WATCH", "namespace"): 1,
    line(200, "PATCH", "resource"): 1,
    line(200, "APPLY", "resource"): 1,
    line(200, "PUT", "resource"): 1,
    line(404, "GET", "resource", "deployments", group="apps", subresource="scale"): 1,
    line(200, "DELETE", "resource"): 1,
    line(200, "DELETE", "namespace"): 1,
}


def test_requests_are_counted_as_upstream_counts_them():
    """Each request is one more under the labels that kube-apiserver gives it."""

    async def main(clock):
        async with served(clock) as (_, server, connection):
            return await asked(server.url, TOKEN, connection.tls())

    grown, text = run_real(main)
    assert grown == EXPECTED
    lines = text.splitlines()
    one = line(200, "LIST", "namespace").removeprefix('{code="200",').removesuffix("}")
    buckets = [each for each in lines if each.startswith(f"apiserver_request_duration_seconds_bucket{{{one}")]
    assert [each.partition('le="')[2].partition('"')[0] for each in buckets] == (
        [
            "0.005",
            "0.025",
            "0.05",
            "0.1",
            "0.2",
            "0.4",
            "0.6",
            "0.8",
            "1",
            "1.25",
            "1.5",
            "2",
            "3",
            "4",
            "5",
            "6",
            "8",
            "10",
            "15",
            "20",
            "30",
            "45",
            "60",
            "+Inf",
        ]
    )
    assert 'apiserver_current_inflight_requests{request_kind="readOnly"} 1' in lines, "this very one"
    assert 'apiserver_resource_objects{group="",resource="namespaces"} 4' in lines
    assert 'apiserver_storage_objects{resource="deployments.apps"} 0' in lines


def test_watches_are_counted_while_they_last():
    """A watch is long-running until its client leaves."""

    async def main(clock):
        async with served(clock) as (_, server, connection):
            headers = {"Authorization": f"Bearer {TOKEN}"}
            connector = make_connector(ssl=connection.tls())
            name = (
                'apiserver_longrunning_requests{component="apiserver",group="",resource="pods",'
                'scope="cluster",subresource="",verb="WATCH",version="v1"}'
            )
            async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

                async def reaches(value):
                    async with asyncio.timeout(300):
                        while True:
                            async with session.get(f"{server.url}/metrics") as answer:
                                if f"{name} {value}" in (await answer.text()).splitlines():
                                    return

                async with session.get(f"{server.url}/api/v1/pods?watch=1"):
                    await reaches(1)
                await reaches(0)

    run_real(main)


def test_series_are_for_administrators():
    """Others are refused in upstream's words, and what they may not do is not counted."""
    viewer = User("viewer")
    identities = Identities({TOKEN: ADMIN, "viewer-token": viewer})

    async def main(clock):
        async with served(clock, identities=identities) as (_, server, connection):
            connector = make_connector(ssl=connection.tls())
            async with aiohttp.ClientSession(connector=connector) as session:
                headers = {"Authorization": "Bearer viewer-token"}
                async with session.get(f"{server.url}/metrics", headers=headers) as answer:
                    refused = await answer.json()
                async with session.get(f"{server.url}/api/v1/nodes", headers=headers) as answer:
                    assert answer.status == 403
                headers = {"Authorization": f"Bearer {TOKEN}"}
                async with session.get(f"{server.url}/metrics", headers=headers) as answer:
                    return refused, requests_total(await answer.text())

    refused, counted = run_real(main)
    assert (refused["code"], refused["reason"]) == (403, "Forbidden")
    assert refused["message"] == 'forbidden: User "viewer" cannot get path "/metrics"'
    assert counted == {}
