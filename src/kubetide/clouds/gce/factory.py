"""``--cloud-provider=gce``: from flags and environment to the provider. Needs the extra ``kubetide[gce]``."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from typing import Any

import msgspec

from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.rest import HttpSender, Request, Rest, Send
from kubetide.clouds.common.tokens import Renewed, Until
from kubetide.clouds.gce.api import ComputeApi, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.references import last_part
from kubetide.clouds.gce.settings import (
    GceConfig,
    GceSettings,
    location_of,
    parse_config,
    parse_discoveries,
    parse_nodes,
)
from kubetide.clouds.registry import CloudContext, missing_package
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, after, minutes, parse_rfc3339

_SCOPE = "https://www.googleapis.com/auth/compute"
_METADATA = "http://metadata.google.internal/computeMetadata/v1"


class _AltToken(msgspec.Struct, frozen=True, rename="camel"):
    access_token: str = ""
    expire_time: str = ""


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider. Raises CloudError, CloudNotFound without google-auth."""
    flags, clock = context.flags, context.clock
    text = await config_text(flags.cloud_config)
    config = parse_config(text)
    async with HttpSender() as send:
        project = config.project_id or await _metadata(send, "project/project-id")
        location = config.local_zone
        if not location:
            zone = last_part(await _metadata(send, "instance/zone"))
            location = location_of(zone, regional=flags.regional)
        settings = GceSettings(
            project=project,
            location=location,
            regional=flags.regional,
            nodes=parse_nodes(flags.nodes),
            discovery=parse_discoveries(flags.node_group_auto_discovery),
            min_refresh_wait=flags.gce_mig_instances_min_refresh_wait_time,
            at_once=max(flags.gce_concurrent_refreshes, GceSettings().at_once),
            bulk_listing=flags.bulk_mig_instances_listing_enabled,
        )
        seed = clock.now()
        rest = Rest(send, clock, refusal, seed=seed)
        token = _tokens(send, config, clock)
        yield GceCloud(ComputeApi(rest, clock, token, project), settings, clock, seed=seed)


async def _metadata(send: Send, path: str) -> str:
    response = await send(Request("GET", f"{_METADATA}/{path}", {}, {"Metadata-Flavor": "Google"}))
    if response.status != 200:
        raise CloudError(
            f"the metadata server does not say {path}: HTTP {response.status}; set it in cloud-config"
        )
    return response.body.decode()


def _tokens(send: Send, config: GceConfig, clock: Clock) -> Renewed[str]:
    try:
        google: Any = importlib.import_module("google.auth")
        requests: Any = importlib.import_module("google.auth.transport.requests")
    except ImportError as error:
        raise missing_package("gce", "google-auth", "gce") from error
    credentials = google.default(scopes=[_SCOPE])[0]
    transport = requests.Request()

    async def default() -> Until[str]:
        await asyncio.to_thread(credentials.refresh, transport)
        expiry = credentials.expiry
        end = after(clock.now(), minutes(30))
        if expiry is not None:
            end = Instant(int(expiry.replace(tzinfo=UTC).timestamp()) * 10**9)
        return Until(str(credentials.token), end)

    ours = Renewed(default, clock)
    if not config.token_url:
        return ours

    async def alternative() -> Until[str]:
        headers = {"Authorization": f"Bearer {await ours()}", "Content-Type": "application/json"}
        response = await send(Request("POST", config.token_url, {}, headers, config.token_body.encode()))
        if response.status != 200:
            raise CloudError(
                f"token-url {config.token_url} answers HTTP {response.status}", cause="Permission"
            )
        token = msgspec.json.decode(response.body, type=_AltToken)
        return Until(token.access_token, parse_rfc3339(token.expire_time))

    return Renewed(alternative, clock)
