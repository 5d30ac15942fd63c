"""``--cloud-provider=kwok``: from ConfigMaps of the cluster to the provider."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from kubetide.clouds.common.ini import CloudConfigError
from kubetide.clouds.kwok.cloud import KwokCloud
from kubetide.clouds.kwok.config import (
    CONFIG_KEY,
    DEFAULT_CONFIG_MAP,
    TEMPLATES_KEY,
    KwokConfig,
    parse_config,
)
from kubetide.clouds.kwok.templates import KwokGroup, has_size, parse_templates, read_groups
from kubetide.clouds.registry import CloudContext
from kubetide.objects.kinds import CONFIG_MAPS, NODES
from kubetide.ports.cloud import Cloud
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, CloudError, NotFound

_CONFIG_MAP_VARIABLE = "KWOK_PROVIDER_CONFIGMAP"
_NAMESPACE_VARIABLE = "POD_NAMESPACE"
_NAMESPACE_FILE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider; its ConfigMaps are read once, now. Raises CloudError, CloudConfigError."""
    cluster, clock = context.cluster, context.clock
    if cluster is None:
        raise CloudConfigError("cloud-provider: kwok creates nodes in a cluster, and there is none here")
    namespace = await _namespace(context.environment)
    named = context.environment.get(_CONFIG_MAP_VARIABLE, "")
    config_map = named if named.strip() else DEFAULT_CONFIG_MAP
    try:
        text, place = await _text(cluster, namespace, config_map, CONFIG_KEY)
        config = parse_config(text, place)
        groups = await _groups(cluster, namespace, config)
    except ApiError as error:
        raise CloudError(f"cloud-provider: kwok: {error}") from error
    async with KwokCloud(cluster, clock, config, groups, seed=clock.now()).open() as cloud:
        yield cloud


async def _groups(cluster: Cluster, namespace: str, config: KwokConfig) -> tuple[KwokGroup, ...]:
    if config.source == "cluster":
        nodes = (await cluster.list(NODES.untyped)).items
        # A node that has just joined says nothing of itself yet; another one of its group may serve.
        return read_groups(filter(has_size, nodes), config, "cluster")
    text, place = await _text(cluster, namespace, config.templates, TEMPLATES_KEY)
    return read_groups(parse_templates(text, place), config, place)


async def _text(cluster: Cluster, namespace: str, name: str, key: str) -> tuple[str, str]:
    """Return the text of a ConfigMap's key, and how messages name it."""
    place = f"ConfigMap {namespace}/{name}"
    try:
        data = (await cluster.get(CONFIG_MAPS, name, namespace=namespace)).data or {}
    except NotFound as error:
        raise CloudConfigError(
            f"cloud-provider: kwok reads its configuration in {place}, which does not exist; create it, or set "
            f"{_CONFIG_MAP_VARIABLE} and {_NAMESPACE_VARIABLE}"
        ) from error
    if key not in data:
        raise CloudConfigError(
            f"{place}: the key {key!r} is missing; it has {', '.join(sorted(data)) or 'none'}"
        )
    return data[key], f"{place}, {key}"


async def _namespace(environment: Mapping[str, str]) -> str:
    """Return the namespace of the ConfigMaps: that of the pod, by variable or by its service account."""
    found = environment.get(_NAMESPACE_VARIABLE, "")
    if not found.strip():
        try:
            found = (await asyncio.to_thread(_NAMESPACE_FILE.read_text, "utf-8")).strip()
        except OSError as error:
            raise CloudConfigError(
                f"cloud-provider: kwok reads ConfigMaps in the namespace that {_NAMESPACE_VARIABLE} names, and it is not set"
            ) from error
    return found
