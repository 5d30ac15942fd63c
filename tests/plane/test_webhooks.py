"""The recorded answers to webhooks are those of a real API server."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from tests.cluster.hook_server import configuration, hook_server, webhook
from tests.cluster.webhook_answers import RECORDED, recordable
from tests.plane.running import ADMIN_TOKEN

from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.units.time import milliseconds

pytestmark = pytest.mark.slow

API = "/apis/admissionregistration.k8s.io/v1"
CONFIG = "/api/v1/namespaces/default/configmaps"
HEADERS = {"Authorization": f"Bearer {ADMIN_TOKEN}", "Content-Type": "application/json"}


def test_recorded_answers(quiet_plane):
    """Each case of the file is answered as it says; a configuration takes effect after a moment."""

    async def main(clock):
        connector = make_connector(ssl=quiet_plane.connection.tls())
        async with hook_server() as hooks, aiohttp.ClientSession(connector=connector) as session:

            async def ask(method, path, body=None):
                data = None if body is None else json.dumps(body).encode()
                url = quiet_plane.url + path
                async with session.request(method, url, data=data, headers=HEADERS) as answer:
                    return answer.status, await answer.json(), answer.headers.getall("Warning", [])

            async def effective(path, *, there):
                """Return the first answer that was made with, or without, the webhook."""
                async with asyncio.timeout(300):
                    while True:
                        before = len(hooks.requests(path))
                        answer = await ask("POST", CONFIG, {"metadata": {"name": "a"}})
                        if (len(hooks.requests(path)) > before) is there:
                            return answer
                        await ask("DELETE", f"{CONFIG}/a")
                        await clock.sleep(milliseconds(20))

            for case, recorded in RECORDED.items():
                stage, path = case.split()
                kind = f"{API}/{stage}webhookconfigurations"
                body = configuration(
                    "hooks", webhook(hooks.client_config(path), "configmaps", operations=["CREATE"])
                )
                assert (await ask("POST", kind, body))[0] == 201
                answer = await effective(path, there=True)
                await ask("DELETE", f"{kind}/hooks")
                for name in ("a", "renamed"):
                    await ask("DELETE", f"{CONFIG}/{name}")
                await effective(path, there=False)
                await ask("DELETE", f"{CONFIG}/a")
                assert recordable(*answer) == recorded, case

    run_real(main)
