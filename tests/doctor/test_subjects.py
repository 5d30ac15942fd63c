"""What the doctor reads of a cluster behind a kubeconfig."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from tests.cluster.answering import answering

from kubetide.doctor.subjects import snapshot_of_cluster
from kubetide.embedded.apiserver.http.kubeconfig import kubeconfig, write_kubeconfig
from kubetide.runtime.configuration.config import make_config
from kubetide.runtime.timing.clock import run_real


@pytest.mark.parametrize(
    ("answer", "flags", "version", "warnings"),
    [
        (web.json_response({"gitVersion": "v1.37.1"}), {}, "1.37", 0),
        (web.json_response({"gitVersion": "v1.37.1"}), {"kubernetes-version": "1.36"}, "1.36", 0),
        (web.Response(status=403), {}, "1.36", 1),
    ],
    ids=["of the server", "of the flag", "not known"],
)
def test_pods_are_looked_at_by_the_rules_of_the_cluster(answer, flags, version, warnings, tmp_path):
    """Where the node loop runs elsewhere, or not yet, its settings have no version, and yet the answers are for this cluster."""
    told = []

    async def handle(request):
        return answer if request.path == "/version" else web.Response(status=404)

    async def main(_clock):
        async with answering(handle) as url:
            path = tmp_path / "kubeconfig"
            write_kubeconfig(path, kubeconfig(url, token="t"))
            config = make_config([("flag", {"kubeconfig": str(path), **flags})])
            return await asyncio.to_thread(snapshot_of_cluster, config, told.append)

    snapshot = run_real(main)
    assert (snapshot.settings.kubernetes_version, len(told)) == (version, warnings)
