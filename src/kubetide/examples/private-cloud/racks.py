"""A private cloud behind an HTTP platform: its pools of servers are node groups.

RACKS_URL says where the platform is, RACKS_TOKEN who asks.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from kubetide.clouds.common import rest
from kubetide.clouds.common.sizes import check_delete, decreased, increased
from kubetide.clouds.common.template import generic_labels, template_node
from kubetide.clouds.registry import CloudContext
from kubetide.objects.base import Quantities
from kubetide.ports.cloud import Cloud, Instance, InstanceError, InstanceState, NodeGroup, NodeTemplate
from kubetide.ports.errors import CloudCause, CloudError

CAUSES: dict[str, CloudCause] = {"sold-out": "OutOfCapacity", "over-quota": "Quota"}
STATES: dict[str, InstanceState] = {"on": "Running", "starting": "Creating", "stopping": "Deleting"}


class Server(msgspec.Struct):
    id: str
    state: str
    problem: str = ""

    def instance(self) -> Instance:
        """Return the server as the node loop sees it."""
        refused = CloudError(f"{self.id}: {self.problem}", cause=CAUSES.get(self.problem, "Other"))
        error = InstanceError(refused.error_class, self.problem, str(refused), refused.cause)
        return Instance(f"racks://{self.id}", STATES[self.state], error if self.problem else None)


class Pool(msgspec.Struct, rename="camel"):
    name: str
    min: int
    max: int
    size: int
    type: str
    cpu: str
    memory: str
    room: str
    servers: tuple[Server, ...] = ()

    def group(self) -> NodeGroup:
        """Return the pool as a node group, with what its next server will have."""
        labels = generic_labels(arch="amd64", instance_type=self.type, region="home", zone=self.room)
        amounts: Quantities = {"cpu": self.cpu, "memory": self.memory, "pods": "110"}
        node = template_node(self.name, labels=labels, taints=(), capacity=amounts)
        template = NodeTemplate(node, source=f"the platform's server type {self.type}")
        instances = tuple(server.instance() for server in self.servers)
        return NodeGroup(self.name, self.min, self.max, self.size, instances=instances, template=template)


def refusal(response: rest.Response) -> CloudError | None:
    """Return what the platform's answer refuses; None for a good answer."""
    if response.status < 300:
        return None
    try:
        said = msgspec.json.decode(response.body, type=dict[str, str])
    except msgspec.MsgspecError:
        said = {}
    code = said.get("code", str(response.status))
    cause, pause = CAUSES.get(code, rest.cause_of_status(response.status)), rest.retry_after(response.headers)
    return CloudError(f"{code}: {said.get('message')}", error_code=code, cause=cause, retry_after=pause)


class Racks(Cloud):
    """The pools of a platform."""

    name, gpu_label = "racks", ""

    def __init__(self, calls: rest.Rest, url: str, token: rest.Token) -> None:
        self.calls, self.url, self.token = calls, url, token

    async def refresh(self) -> Sequence[NodeGroup]:
        return [pool.group() for _, pool in sorted((await self.pools()).items())]

    async def increase_size(self, group_id: str, delta: int) -> None:
        pool = await self.pool(group_id)
        increased(pool.size, delta, pool.max)
        await self.order(pool, "orders", {"count": delta})

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        pool = await self.pool(group_id)
        decreased(pool.size, delta, len(pool.servers))
        await self.order(pool, "withdrawals", {"count": delta})

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        pool = await self.pool(group_id)
        servers = {server.instance().provider_id: server for server in pool.servers}
        if foreign := set(provider_ids) - servers.keys():
            raise CloudError(f"{', '.join(sorted(foreign))}: not in pool {group_id}")
        doomed = [servers[one].id for one in dict.fromkeys(provider_ids) if servers[one].state != "stopping"]
        if doomed and not force:
            check_delete(pool.size, pool.min, len(doomed))
        await self.order(pool, "releases", {"servers": doomed})

    async def pools(self) -> dict[str, Pool]:
        answer = await self.calls.read(lambda: self.request("GET", "pools"))
        return {pool.name: pool for pool in rest.decoded(answer, list[Pool])}

    async def pool(self, name: str) -> Pool:
        pools = await self.pools()
        if name not in pools:
            raise CloudError(f"no pool {name}; there are {', '.join(sorted(pools)) or 'none'}")
        return pools[name]

    async def order(self, pool: Pool, what: str, body: dict[str, Any]) -> None:
        await self.calls.change(await self.request("POST", f"pools/{pool.name}/{what}", body))

    async def request(self, method: str, path: str, body: dict[str, Any] | None = None) -> rest.Request:
        return await rest.json_request(self.token, method, f"{self.url}/{path}", {}, body)


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Open the provider. Raises CloudError without an address."""

    async def token() -> str:
        return context.environment.get("RACKS_TOKEN", "")

    if not (url := context.environment.get("RACKS_URL")):
        raise CloudError("racks: set RACKS_URL to the address of the platform")
    async with rest.HttpSender(context.environment) as send:
        yield Racks(rest.Rest(send, context.clock, refusal, withheld=context.refusal), url, token)
