"""``--cloud-provider=aws``: from upstream's flags and environment to the provider."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

from kubetide.clouds.aws.api import AwsApi, Caller
from kubetide.clouds.aws.cloud import AwsCloud
from kubetide.clouds.aws.config import AwsConfig, aws_config
from kubetide.clouds.aws.discovery import joined
from kubetide.clouds.aws.prices import SpotPrices
from kubetide.clouds.aws.types import InstanceTypes
from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.common.node_spec import NodeSpecError, parse_node_spec
from kubetide.clouds.registry import CloudContext, missing_package
from kubetide.ports.cloud import Cloud


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Open the provider. Raises CloudNotFound without boto3, CloudConfigError for flags that cannot be used."""
    flags = context.flags
    try:
        groups = [parse_node_spec(text) for text in flags.nodes]
    except NodeSpecError as error:
        raise CloudConfigError(f"--nodes: {error}; give MIN:MAX:NAME of an Auto Scaling group") from error
    discovery = joined(flags.node_group_auto_discovery)
    if not groups and not discovery:
        raise CloudConfigError(
            "aws: no node groups; give --nodes=MIN:MAX:NAME or --node-group-auto-discovery=asg:tag=KEY"
        )
    config = aws_config(await config_text(flags.cloud_config), context.environment)
    client = _client(config, context.refusal)
    try:
        api = AwsApi(client)
        types = InstanceTypes(None if flags.aws_use_static_instance_list else api)
        prices = SpotPrices(api)
        yield AwsCloud(api, context.clock, groups=groups, discovery=discovery, types=types, prices=prices)
    finally:
        client.close()


class _Client(Caller, Protocol):
    def close(self) -> None: ...


def _client(config: AwsConfig, withheld: Callable[[], str]) -> _Client:
    try:
        from kubetide.clouds.aws.client import BotoClient  # noqa: PLC0415  # boto3 is an extra
    except ImportError as error:
        raise missing_package("--cloud-provider=aws", "aws") from error
    client: _Client = BotoClient(config, withheld=withheld)
    return client
