"""The embedded cloud of a test for other processes: HTTP over a Unix socket, and what was asked of it.

``tests.plane.remote_cloud:connected`` is a factory for ``--cloud-provider``; ``--cloud-config`` is the socket.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import aiohttp
import msgspec
from aiohttp import web

from kubetide.embedded.cloud import GPU_LABEL
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.errors import CloudError

Report = Callable[[Sequence[NodeGroup]], Sequence[NodeGroup]]

_GROUPS = msgspec.json.Decoder(tuple[NodeGroup, ...])


class Call(NamedTuple):
    """A command that the cloud has carried out."""

    name: str
    group: str
    delta: int = 0
    machines: tuple[str, ...] = ()


@dataclass
class Ledger:
    """The requests to a cloud, and an action to run once a command has been carried out and not yet answered.

    Attributes:
        calls: Commands that were carried out, in order.
        targets: By group, the target sizes after each of them.
        refused: Commands that the cloud refused, in its words.
        looks: How often its groups were requested: once in each tick.
        after: Called with each command that was carried out, before its caller gets the answer.
    """

    calls: list[Call] = field(default_factory=list)
    targets: dict[str, list[int]] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    looks: int = 0
    after: Callable[[Call], None] = lambda _: None

    def increased(self, group: str) -> int:
        """How many machines were requested in all."""
        return sum(call.delta for call in self.calls if (call.name, call.group) == ("increase_size", group))

    def deleted(self, group: str) -> list[str]:
        """The machines that were to be deleted, as often as they were named."""
        return [name for call in self.calls if call.group == group for name in call.machines]


class _Refusal(msgspec.Struct):
    message: str
    error_class: str
    error_code: str


@asynccontextmanager
async def serving(cloud: Cloud, socket: str, reported: Report = tuple):
    """Serve a cloud on a socket; return the Ledger. ``reported`` gives the groups as others are to see them."""
    ledger = Ledger()

    async def refresh(_request):
        ledger.looks += 1
        return _json(reported(await cloud.refresh()))

    async def command(request):
        call = msgspec.convert(await request.json(), Call)
        try:
            match call.name:
                case "increase_size" | "decrease_target_size":
                    await getattr(cloud, call.name)(call.group, call.delta)
                case "delete_nodes" | "force_delete_nodes":
                    await cloud.delete_nodes(
                        call.group, call.machines, force=call.name == "force_delete_nodes"
                    )
                case other:
                    raise web.HTTPNotFound(text=f"no command {other}")
        except CloudError as error:
            ledger.refused.append(str(error))
            return _json(_Refusal(str(error), error.error_class, error.error_code), status=409)
        ledger.calls.append(call)
        for group in await cloud.refresh():
            ledger.targets.setdefault(group.id, []).append(group.target_size)
        ledger.after(call)
        return web.Response()

    app = web.Application()
    app.add_routes([web.get("/groups", refresh), web.post("/commands", command)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    try:
        await web.UnixSite(runner, socket).start()
        yield ledger
    finally:
        await runner.cleanup()


def _json(value: object, status: int = 200):
    return web.Response(body=msgspec.json.encode(value), status=status, content_type="application/json")


class RemoteCloud(Cloud):
    """The Cloud port over such a socket."""

    name = "embedded"
    gpu_label = GPU_LABEL

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self._session = session

    async def refresh(self):
        return _GROUPS.decode(await self._ask("GET", "/groups"))

    async def increase_size(self, group_id, delta):
        await self._command(Call("increase_size", group_id, delta))

    async def decrease_target_size(self, group_id, delta):
        await self._command(Call("decrease_target_size", group_id, delta))

    async def delete_nodes(self, group_id, provider_ids, *, force=False):
        name = "force_delete_nodes" if force else "delete_nodes"
        await self._command(Call(name, group_id, machines=tuple(provider_ids)))

    async def _command(self, call: Call) -> None:
        await self._ask("POST", "/commands", msgspec.json.encode(call))

    async def _ask(self, method: str, path: str, data: bytes | None = None) -> bytes:
        try:
            async with self._session.request(method, f"http://cloud{path}", data=data) as answer:
                body = await answer.read()
        except aiohttp.ClientError as error:
            raise CloudError(f"the cloud does not answer: {error}") from error
        if answer.status == 409:
            refusal = msgspec.json.decode(body, type=_Refusal)
            raise CloudError(refusal.message, error_class=refusal.error_class, error_code=refusal.error_code)
        if answer.status != 200:
            raise CloudError(f"the cloud answers {answer.status}: {body.decode()}")
        return body


@asynccontextmanager
async def connected(context):
    """Yield the cloud behind a socket, for ``--cloud-provider``."""
    async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(context.flags.cloud_config)) as session:
        yield RemoteCloud(session)
