"""Whether a real API server and the embedded one say the same of an object, and show it alike."""

from __future__ import annotations

import asyncio
import re

from tests.cluster.served import TOKEN, served
from tools.plane.build import find

from kubetide.cluster import HttpCluster
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.embedded.apiserver.store import EmbeddedCluster, Store
from kubetide.objects.kinds import KINDS
from kubetide.ports.errors import ApiError
from kubetide.runtime.timing.clock import run_real

_STRUCT = re.compile(r"(?<=Invalid value: )[\[{].*[\]}](?=: )")
"""A value that upstream shows as it is in Go."""


def _said(error):
    """The compared part of a refusal, without values and diffs that upstream shows as Go has them."""
    status = error.status()
    causes = (status.get("details") or {}).get("causes") or []
    return status["reason"], {
        (one.get("field"), one.get("reason"), _STRUCT.sub("", one.get("message", "").partition("\n")[0]))
        for one in causes
    }


async def _answers(client, body, patch=None):
    kind = KINDS[body["apiVersion"], body["kind"]]
    namespace = "default" if kind.namespaced else ""
    meta = {"name": body["metadata"]["name"]}
    try:
        await client.create(kind, {**body, "metadata": meta}, namespace=namespace)
    except ApiError as error:
        return _said(error)
    try:
        if patch is not None:
            await client.patch(kind, meta["name"], patch, namespace=namespace)
    except ApiError as error:
        return _said(error)
    else:
        return None
    finally:
        free = {"metadata": {"finalizers": None}}
        await client.patch(kind, meta["name"], free, namespace=namespace)
        await client.delete(kind, meta["name"], namespace=namespace)


def differing_answers(plane, created, updated):
    """Return what both say of the bodies, and of (body, patch) pairs, where it is not the same; by name."""

    async def run(clock):
        ours = EmbeddedCluster(Store(), clock)
        found = {}
        async with HttpCluster(plane.connection, clock) as client:
            for name, (body, *patch) in {**{n: (b,) for n, b in created.items()}, **updated}.items():
                pair = await _answers(client, body, *patch), await _answers(ours, body, *patch)
                if pair[0] != pair[1]:
                    found[name] = pair
        return found

    return run_real(run)


async def _shown(client, bodies, kubectl, config):
    """The output of `kubectl get -o wide` for one object after another, without ages."""
    printed = []
    for body in bodies:
        kind = KINDS[body["apiVersion"], body["kind"]]
        name = body["metadata"].get("name", "usual")
        meta = {"name": name, **{k: v for k, v in body["metadata"].items() if k == "annotations"}}
        namespace = "default" if kind.namespaced else ""
        await client.create(kind, {**body, "metadata": meta}, namespace=namespace)
        command = [kubectl, f"--kubeconfig={config}", "get", kind.plural, name, "-o", "wide"]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        text, _ = await process.communicate()
        plain = re.sub(r"\b\d+s\b", "AGE", re.sub(r" +", " ", text.decode()))
        printed.append(re.sub(r"\d{4}-\S+Z", "DATE", plain))
        await client.patch(kind, name, {"metadata": {"finalizers": None}}, namespace=namespace)
        await client.delete(kind, name, namespace=namespace)
    return printed


def shown_by_both(plane, bodies, folder):
    """Return what kubectl prints of each body from the embedded server, and from the real one."""
    kubectl = str(find("kubectl"))

    async def run(clock):
        async with HttpCluster(plane.connection, clock) as client:
            real = await _shown(client, bodies, kubectl, plane.kubeconfig)
        async with served(clock) as (_, server, connection), HttpCluster(connection, clock) as client:
            config = folder / "kubeconfig"
            write_kubeconfig(
                config, kubeconfig(server.url, token=TOKEN, authority=connection.authority.encode())
            )
            return await _shown(client, bodies, kubectl, config), real

    return run_real(run)
