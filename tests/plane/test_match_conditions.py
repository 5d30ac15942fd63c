"""Match conditions of webhooks: the embedded server and a real one answer alike, word for word."""

from __future__ import annotations

import asyncio
import json

import aiohttp
import pytest
from tests.cluster.hook_server import configuration, hook_server, webhook
from tests.cluster.served import TOKEN, served
from tests.cluster.webhook_answers import recordable
from tests.plane.running import ADMIN_TOKEN

from kubetide.embedded.apiserver.admission.http import HttpCaller
from kubetide.runtime.timing.clock import run_real
from kubetide.serving import make_connector
from kubetide.units.time import milliseconds

pytestmark = pytest.mark.slow

CONFIG = "/api/v1/namespaces/default/configmaps"

# The webhook denies what it is asked about, so every answer shows whether it was asked.
CASES = {
    "holds": (["object.metadata.name == 'a'"], {}),
    "does not hold": (["object.metadata.name == 'b'"], {}),
    "one of two": (["true", "has(object.data) && object.data.size() > 1"], {}),
    "of the request": (
        [
            "request.operation == 'CREATE' && request.resource.resource == 'configmaps'",
            "request.kind.kind == 'ConfigMap' && request.requestKind.version == 'v1'",
            "request.namespace == 'default' && !has(request.subResource) && request.name == 'a'",
            "!request.dryRun && request.userInfo.groups.exists(g, g.startsWith('system:'))",
        ],
        {},
    ),
    "no old object": (["oldObject == null"], {}),
    "texts": (["object.data.key.matches('^v[0-9]+$') && object.data.key.lowerAscii() == 'v1'"], {}),
    "missing key": (["object.metadata.labels.app == 'x'"], {}),
    "missing key, ignored": (["object.metadata.labels.app == 'x'"], {"failurePolicy": "Ignore"}),
    "missing key, other does not hold": (["object.metadata.labels.app == 'x'", "false"], {}),
    "two faults": (["object.metadata.labels.app == 'x'", "object.spec.n > 1"], {}),
    "wrong type": (["object.data.key > 3"], {}),
    "optional": (["object.metadata.?labels.?app.orValue('none') == 'none'"], {}),
}

REFUSED = {
    "syntax": "object.metadata.name = 'a'",
    "no bool": "object.metadata.name",
    "a number": "1 + 1",
    "no such variable": "objekt.metadata.name == 'a'",
    "no such field": "request.object == null",
    "no such function": "object.metadata.name.startWith('a')",
    "two lines": "object.metadata.name == 'a' &&\n  request.who == 'me'",
    "empty": "  ",
}


def conditions(*expressions):
    return [{"name": f"c{at}", "expression": text} for at, text in enumerate(expressions)]


class Side:
    """One of the two servers, with a webhook of its own."""

    def __init__(self, clock, session, hooks, url, token):
        self.clock, self.session, self.hooks, self.url = clock, session, hooks, url
        self.headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    async def ask(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        async with self.session.request(method, self.url + path, data=data, headers=self.headers) as answer:
            return answer.status, await answer.json(), answer.headers.getall("Warning", [])

    async def configure(self, stage, *expressions, **more):
        """Return the answer to a configuration with these conditions, and a second webhook that shows its effect."""
        denying = webhook(
            self.hooks.client_config("deny"),
            "configmaps",
            operations=["CREATE"],
            matchConditions=conditions(*expressions),
            **more,
        )
        shown = webhook(
            self.hooks.client_config("allow"), "configmaps", name="b.hooks.example.com", operations=["DELETE"]
        )
        kind = f"/apis/admissionregistration.k8s.io/v1/{stage}webhookconfigurations"
        return await self.ask("POST", kind, configuration("hooks", denying, shown))

    async def effective(self, *, there):
        """Wait until the configuration holds, or holds no more."""
        async with asyncio.timeout(300):
            while True:
                before = len(self.hooks.requests("allow"))
                await self.ask("DELETE", f"{CONFIG}/shown?dryRun=All")
                if (len(self.hooks.requests("allow")) > before) is there:
                    return
                await self.clock.sleep(milliseconds(20))

    async def played(self, stage, expressions, more):
        """Return the answer to a creation while the configuration holds."""
        code, said, _ = await self.configure(stage, *expressions, **more)
        assert code == 201, said
        await self.effective(there=True)
        answer = await self.ask("POST", CONFIG, {"metadata": {"name": "a"}, "data": {"key": "v1"}})
        await self.ask("DELETE", f"/apis/admissionregistration.k8s.io/v1/{stage}webhookconfigurations/hooks")
        await self.effective(there=False)
        await self.ask("DELETE", f"{CONFIG}/a")
        return recordable(*answer)


def test_match_conditions(quiet_plane):
    """Both servers ask the same webhooks, and refuse the same requests and configurations."""

    async def main(clock):
        async with (
            hook_server() as hooks,
            HttpCaller() as caller,
            served(clock, webhooks=caller) as (_, server, connection),
            aiohttp.ClientSession(connector=make_connector(ssl=connection.tls())) as session,
            hook_server() as real_hooks,
            aiohttp.ClientSession(connector=make_connector(ssl=quiet_plane.connection.tls())) as real_session,
        ):
            ours = Side(clock, session, hooks, server.url, TOKEN)
            real = Side(clock, real_session, real_hooks, quiet_plane.url, ADMIN_TOKEN)
            for side in (ours, real):
                await side.ask("POST", CONFIG, {"metadata": {"name": "shown"}})
            codes = set()
            for stage in ("mutating", "validating"):
                for case, (expressions, more) in CASES.items():
                    expected = await real.played(stage, expressions, more)
                    assert await ours.played(stage, expressions, more) == expected, (stage, case)
                    codes.add(expected["code"])
            assert codes == {201, 400, 403}
            for case, expression in REFUSED.items():
                code, said, _ = await real.configure("mutating", expression)
                assert code == 422, case
                assert (await ours.configure("mutating", expression))[:2] == (code, said), case
            await real.ask("DELETE", f"{CONFIG}/shown")

    run_real(main)
