"""Which cloud: providers by upstream's names, loaded only when they are named.

A provider is a factory: it takes a ``CloudContext`` and returns an async context manager of a Cloud, which is
open as long as the context is. A package offers its own as an entry point of the group ``kubetide.clouds``; one
that is not packaged is named as ``module:factory``.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final, cast

from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, GroupOptions
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import KubetideError
from kubetide.ports.plugins import Plugin, PluginGroup, PluginNotUsable, plugin_names
from kubetide.units.time import Duration, seconds

_SHIPPED: Final[Mapping[str, str]] = {
    name: f"kubetide.clouds.{package}.factory:connect"
    for name, package in (
        ("alicloud", "alibaba"),
        ("aws", "aws"),
        ("azure", "azure"),
        ("externalgrpc", "externalgrpc"),
        ("gce", "gce"),
        ("kwok", "kwok"),
        ("labels", "labels"),
        ("tencentcloud", "tencent"),
    )
}
"""Our own providers, by upstream's names."""

UPSTREAM_OPTIONS: Final = GroupOptions(
    scale_down_utilization_threshold=0.5,
    scale_down_gpu_utilization_threshold=0.5,
    scale_down_unneeded_time="10m0s",
    scale_down_unready_time="20m0s",
    max_node_provision_time="15m0s",
    ignore_daemonsets_utilization=False,
    zero_or_max_node_scaling=False,
)
"""What upstream's flags say unless they are set."""
_LISTING_WAIT: Final = seconds(5)


@dataclass(frozen=True)
class CloudFlags:
    """What upstream's flags say of the cloud.

    Attributes:
        cloud_config: Path of the provider's own file; empty for none.
        nodes: Each ``MIN:MAX:NAME``.
        node_group_label: Keys of labels that name a node's group; of the provider ``labels``.
        node_group_auto_discovery: Each ``DISCOVERER:key=value,…``.
        user_agent: What the provider's requests call themselves.
        aws_use_static_instance_list: Whether the shipped list of instance types is used without asking EC2.
        regional: Whether the location of GCE is a region.
        gce_concurrent_refreshes: How many groups are listed at once.
        gce_mig_instances_min_refresh_wait_time: Least time between two lists of one group's instances.
        bulk_mig_instances_listing_enabled: Whether instances are listed by zone.
    """

    cloud_config: str = ""
    nodes: tuple[str, ...] = ()
    node_group_label: tuple[str, ...] = ()
    node_group_auto_discovery: tuple[str, ...] = ()
    user_agent: str = "cluster-autoscaler"
    aws_use_static_instance_list: bool = False
    regional: bool = False
    gce_concurrent_refreshes: int = 1
    gce_mig_instances_min_refresh_wait_time: Duration = _LISTING_WAIT
    bulk_mig_instances_listing_enabled: bool = False


@dataclass(frozen=True)
class CloudContext:
    """What a provider may use.

    Attributes:
        flags: What the flags say of the cloud.
        clock: The time.
        environment: The environment variables.
        cluster: Where the nodes join; None where there is none.
        defaults: What the flags say of a group that has no options of its own.
        warn: To be called with a sentence for what the provider leaves out, once for each.
        refusal: Returns why nothing may be changed now, empty if it may; to be asked before each request that changes
            something, as a call of several requests may be interrupted for longer than a lease lasts.
    """

    flags: CloudFlags
    clock: Clock
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    cluster: Cluster | None = None
    defaults: GroupOptions = UPSTREAM_OPTIONS
    warn: Callable[[str], None] = lambda _: None
    refusal: Callable[[], str] = lambda: ""


CloudFactory = Callable[[CloudContext], AbstractAsyncContextManager[Cloud]]


PLUGINS: Final = PluginGroup[CloudFactory](
    name="kubetide.clouds",
    setting="cloud-provider",
    noun="cloud",
    must="be a function of a CloudContext that returns an async context manager",
    fits=callable,
)


class CloudNotFound(KubetideError):
    """No provider of that name, or one whose package is not installed; the text names the fix."""


def provider_names() -> tuple[str, ...]:
    """Return the names of all providers that are shipped or installed, sorted."""
    return tuple(sorted({*_SHIPPED, *plugin_names(PLUGINS.name)}))


def is_shipped(name: str) -> bool:
    """Return whether a name is that of one of kubetide's own providers."""
    return name in _SHIPPED


def cloud_factory(name: str) -> CloudFactory:
    """Return the provider of a name: shipped, installed, or ``module:factory``. Raises CloudNotFound."""
    return find_cloud(name)[1]


def find_cloud(name: str) -> tuple[Plugin | None, CloudFactory]:
    """Return which plug-in a name means, None for a provider of ours, and its factory. Raises CloudNotFound."""
    place = _SHIPPED.get(name)
    if place is not None:
        module, _, attribute = place.partition(":")
        return None, cast("CloudFactory", getattr(importlib.import_module(module), attribute))
    if ":" not in name and name not in provider_names():
        raise CloudNotFound(
            f"cloud-provider: there is no {name!r}; there are {', '.join(provider_names())}; one of your own is "
            "named as module:factory"
        )
    try:
        return PLUGINS.load(name)
    except PluginNotUsable as error:
        raise CloudNotFound(str(error)) from error


EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "aws": ("boto3>=1.44",),
    "gce": ("google-auth[requests]>=2.60",),
    "azure": ("azure-identity>=1.27",),
    "grpc": ("grpcio>=1.85", "protobuf>=7.34"),
}
"""Requirements of the extras of ``pyproject.toml`` that providers and expanders need, as long as no index has the extras."""


def missing_package(what: str, extra: str) -> CloudNotFound:
    """Return the error of a setting or a command whose extra is not installed."""
    packages = " ".join(f"'{one}'" for one in EXTRAS[extra])
    return CloudNotFound(f"{what} needs: pip install {packages}")
