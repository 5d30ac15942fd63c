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
from kubetide.clouds.common.rest import HttpSender, NoAnswer, Request, Rest, Send, decoded
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
from kubetide.units.time import Instant, TimeFormatError, after, minutes, parse_rfc3339

_SCOPE = "https://www.googleapis.com/auth/compute"
_METADATA = "http://metadata.google.internal/computeMetadata/v1"
_KEYS = {"project/project-id": "project-id", "instance/zone": "local-zone"}
"""What of cloud-config stands for an entry of the metadata server."""


class _AltToken(msgspec.Struct, frozen=True, rename="camel"):
    access_token: str = ""
    expire_time: str = ""


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider. Raises CloudError, CloudNotFound without google-auth."""
    flags, clock = context.flags, context.clock
    text = await config_text(flags.cloud_config)
    config = parse_config(text)
    async with HttpSender(context.environment) as send:
        project = config.project_id or await read_metadata(send, "project/project-id")
        location = config.local_zone
        if not location:
            zone = last_part(await read_metadata(send, "instance/zone"))
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
        token = _tokens(send, config, clock)
        rest = Rest(send, clock, refusal, seed=seed, renew=token.forget, withheld=context.refusal)
        yield GceCloud(ComputeApi(rest, clock, token, project), settings, clock, seed=seed)


async def read_metadata(send: Send, path: str) -> str:
    """Return an entry of the metadata server. Raises CloudError that names the key of cloud-config in its place."""
    try:
        response = await send(Request("GET", f"{_METADATA}/{path}", {}, {"Metadata-Flavor": "Google"}))
    except NoAnswer as error:
        raise CloudError(f"{path}: {error}; off Compute Engine set {_KEYS[path]} in cloud-config") from error
    if response.status != 200:
        raise CloudError(
            f"the metadata server does not say {path}: HTTP {response.status}; set {_KEYS[path]} in cloud-config"
        )
    return response.body.decode()


def _tokens(send: Send, config: GceConfig, clock: Clock) -> Renewed[str]:
    try:
        google: Any = importlib.import_module("google.auth")
        exceptions: Any = importlib.import_module("google.auth.exceptions")
        requests: Any = importlib.import_module("google.auth.transport.requests")
    except ImportError as error:
        raise missing_package("--cloud-provider=gce", "gce") from error
    try:
        credentials = google.default(scopes=[_SCOPE])[0]
    except exceptions.GoogleAuthError as error:
        raise CloudError(
            f"no credentials for Compute Engine: {error}; set GOOGLE_APPLICATION_CREDENTIALS to their file",
            cause="Permission",
        ) from error
    transport = requests.Request()

    async def default() -> Until[str]:
        try:
            await asyncio.to_thread(credentials.refresh, transport)
        except exceptions.GoogleAuthError as error:
            raise CloudError(f"no access token for Compute Engine: {error}", cause="Permission") from error
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
        token = decoded(response, _AltToken)
        try:
            return Until(token.access_token, parse_rfc3339(token.expire_time))
        except TimeFormatError as error:
            raise CloudError(f"token-url {config.token_url} answers no expireTime: {error}") from error

    return Renewed(alternative, clock)
