"""``--cloud-provider=alicloud``: from flags and environment to the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec

from kubetide.clouds.alibaba.api import AlibabaApi, refusal
from kubetide.clouds.alibaba.cloud import AlibabaCloud
from kubetide.clouds.alibaba.config import AlibabaConfig, advice, check_file, read_environment
from kubetide.clouds.common.environment_variables import check_trimmed
from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.rest import HttpSender, NoAnswer, Request, Response, Rest, Send, decoded
from kubetide.clouds.common.sizes import parse_node_specs
from kubetide.clouds.common.tokens import Keys, Renewed, Until
from kubetide.clouds.registry import CloudContext
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.units.seeds import uuid_of
from kubetide.units.time import Instant, TimeFormatError, format_rfc3339, parse_rfc3339

_METADATA = "http://100.100.100.200"
_FOR_EVER = Instant((1 << 63) - 1)


class _Temporary(msgspec.Struct, frozen=True, rename="pascal"):
    access_key_id: str = ""
    access_key_secret: str = ""
    security_token: str = ""
    expiration: str = ""

    def until(self) -> Until[Keys]:
        """Return the keys and their end. Raises CloudError."""
        keys = Keys(self.access_key_id, self.access_key_secret, self.security_token)
        if not all(keys):
            raise CloudError("the answer to a request for keys of a role has no keys", cause="Permission")
        try:
            return Until(keys, parse_rfc3339(self.expiration))
        except TimeFormatError as error:
            raise CloudError(f"the end of the keys of a role cannot be read: {error}") from error


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
    check_trimmed(context.environment, ("REGION_ID", "ACCESS_KEY_ID", "ACCESS_KEY_SECRET"))
    config = read_environment(context.environment)
    async with HttpSender(context.environment) as send:
        metadata = MetadataService(send, config, context.environment.get("METADATA_ENDPOINT") or _METADATA)
        region = config.region or await metadata.read("region-id")
        keys = keys_of(send, config, clock, metadata)
        rest = Rest(send, clock, refusal, seed=clock.now(), renew=keys.forget, withheld=context.refusal)
        api = AlibabaApi(rest, clock, keys, region, seed=clock.now())
        yield AlibabaCloud(api, nodes, region, clock)


class MetadataService:
    """The metadata service of the machine.

    Args:
        send: The transport.
        config: What the environment says already.
        endpoint: Where to ask.
    """

    def __init__(self, send: Send, config: AlibabaConfig, endpoint: str = _METADATA) -> None:
        self._send, self._config, self._endpoint = send, config, endpoint.rstrip("/")

    async def read(self, path: str) -> str:
        """Return an entry. Raises CloudError that names the variables in its place."""
        try:
            response = await self._send(Request("GET", f"{self._endpoint}/latest/meta-data/{path}"))
        except NoAnswer as error:
            raise CloudError(f"{path}: {error}; {advice(self._config)}") from error
        text = response.body.decode("utf-8", "replace").strip()
        if response.status != 200 or not text:
            seen = f"the metadata service does not say {path}: HTTP {response.status}"
            raise CloudError(f"{seen}; {advice(self._config)}")
        return text


def keys_of(send: Send, config: AlibabaConfig, clock: Clock, metadata: MetadataService) -> Renewed[Keys]:
    """Return the keys that sign requests, renewed before they end."""

    async def of_environment() -> Until[Keys]:
        return Until(Keys(config.access_key_id, config.access_key_secret), _FOR_EVER)

    async def of_role() -> Until[Keys]:
        try:
            token = await asyncio.to_thread(Path(config.oidc_token_file).read_text, "utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CloudError(f"ALIBABA_CLOUD_OIDC_TOKEN_FILE: {error}", cause="Permission") from error
        now = clock.now()
        query = {
            "Action": "AssumeRoleWithOIDC",
            "Version": "2015-04-01",
            "Format": "JSON",
            "Timestamp": format_rfc3339(now),
            "SignatureNonce": uuid_of(0, "sts", now),
            "RoleSessionName": config.session,
        }
        form = {
            "RoleArn": config.role_arn,
            "OIDCProviderArn": config.oidc_provider_arn,
            "OIDCToken": token.strip(),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        url = f"https://sts.{config.region}.aliyuncs.com/"
        response = await send(Request("POST", url, query, headers, urlencode(form).encode()))
        refused = refusal(response)
        if refused is not None:
            raise refused
        return decoded(response, _Assumed).credentials.until()

    async def of_machine() -> Until[Keys]:
        role = (await metadata.read("ram/security-credentials/")).partition("\n")[0]
        found = await metadata.read(f"ram/security-credentials/{role}")
        return decoded(Response(200, {}, found.encode()), _Temporary).until()

    makers = {"access key": of_environment, "rrsa": of_role, "metadata service": of_machine}
    return Renewed(makers[config.auth], clock)
