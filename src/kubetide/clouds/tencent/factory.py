"""``--cloud-provider=tencentcloud``: from flags and environment to the provider."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kubetide.clouds.common.environment_variables import check_trimmed
from kubetide.clouds.common.rest import HttpSender, Rest
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.common.tokens import Keys
from kubetide.clouds.registry import CloudContext
from kubetide.clouds.tencent.api import TencentApi, refusal
from kubetide.clouds.tencent.cloud import TencentCloud
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider: ``REGION``, ``SECRET_ID``, ``SECRET_KEY``; the file is not read. Raises CloudError."""
    environment = context.environment
    check_trimmed(environment, ("REGION", "SECRET_ID", "SECRET_KEY", "SECRET_TOKEN"))
    for name in ("REGION", "SECRET_ID", "SECRET_KEY"):
        if not environment.get(name):
            raise CloudError(f"tencentcloud: the environment variable {name} is not set")
    nodes = parse_node_specs(context.flags.nodes)
    if not nodes:
        raise CloudError("tencentcloud: no group is named; set --nodes=MIN:MAX:asg-…")
    keys = Keys(environment["SECRET_ID"], environment["SECRET_KEY"], environment.get("SECRET_TOKEN", ""))

    async def credentials() -> Keys:
        return keys

    clock, region = context.clock, environment["REGION"]
    async with HttpSender(context.environment) as send:
        rest = Rest(send, clock, refusal, seed=clock.now(), withheld=context.refusal)
        yield TencentCloud(TencentApi(rest, clock, credentials, region), nodes, region, clock)
