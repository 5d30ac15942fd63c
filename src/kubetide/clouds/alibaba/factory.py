"""``--cloud-provider=alicloud``: from flags and environment to the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.alibaba.config import AlibabaConfig, check_file, read_environment
from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.rest import HttpSender, Request, Rest, Send
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.common.tokens import Keys, Renewed, Until
from kubetide.clouds.registry import CloudContext
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.units.seeds import uuid_of
from kubetide.units.time import Instant, format_rfc3339, parse_rfc3339

_METADATA = "http://100.100.100.200/latest/meta-data"
_FOR_EVER = Instant((1 << 63) - 1)


class _Temporary(msgspec.Struct, frozen=True, rename="pascal"):
    access_key_id: str = ""
    access_key_secret: str = ""
    security_token: str = ""
    expiration: str = ""

    def until(self) -> Until[Keys]:
        """Return the keys and their end."""
        keys = Keys(self.access_key_id, self.access_key_secret, self.security_token)
        return Until(keys, parse_rfc3339(self.expiration))


class _Assumed(msgspec.Struct, frozen=True, rename="pascal"):
    credentials: _Temporary


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider; all is in the environment. Raises CloudError."""
    flags, clock = context.flags, context.clock
    check_file(await config_text(flags.cloud_config))
    nodes = parse_node_specs(flags.nodes)
    if not nodes:
        raise CloudError("alicloud: no group is named; set --nodes=MIN:MAX:asg-…; there is no discovery")
    config = read_environment(context.environment)
    async with HttpSender(context.environment) as send:
        region = config.region or await _metadata(send, "region-id")
        rest = Rest(send, clock, refusal, seed=clock.now())
        api = AlibabaApi(rest, clock, _keys(send, config, clock), region, seed=clock.now())
        yield AlibabaCloud(api, nodes, region, clock)


async def _metadata(send: Send, path: str) -> str:
    response = await send(Request("GET", f"{_METADATA}/{path}"))
    if response.status != 200:
        raise CloudError(
            f"the metadata service does not say {path}: HTTP {response.status}; set the environment"
        )
    return response.body.decode().strip()


def _keys(send: Send, config: AlibabaConfig, clock: Clock) -> Renewed[Keys]:
    async def of_environment() -> Until[Keys]:
        return Until(Keys(config.access_key_id, config.access_key_secret), _FOR_EVER)

    async def of_role() -> Until[Keys]:
        token = await asyncio.to_thread(Path(config.oidc_token_file).read_text)
        now = clock.now()
        query = {
            "Action": "AssumeRoleWithOIDC",
            "Version": "2015-04-01",
            "Format": "JSON",
            "Timestamp": format_rfc3339(now),
            "SignatureNonce": uuid_of(0, "sts", now),
            "RoleArn": config.role_arn,
            "OIDCProviderArn": config.oidc_provider_arn,
            "OIDCToken": token.strip(),
            "RoleSessionName": config.session,
        }
        response = await send(Request("POST", f"https://sts.{config.region}.aliyuncs.com/", query))
        error = refusal(response)
        if error is not None:
            raise error
        return msgspec.json.decode(response.body, type=_Assumed).credentials.until()

    async def of_machine() -> Until[Keys]:
        role = await _metadata(send, "ram/security-credentials/")
        found = await _metadata(send, f"ram/security-credentials/{role}")
        return msgspec.json.decode(found, type=_Temporary).until()

    makers = {"access key": of_environment, "rrsa": of_role, "metadata service": of_machine}
    return Renewed(makers[config.auth], clock)
