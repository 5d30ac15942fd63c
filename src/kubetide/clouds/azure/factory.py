"""``--cloud-provider=azure``: from flags and environment to the provider. Needs the extra ``kubetide[azure]``."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from kubetide.clouds.azure.api import ENDPOINT, ComputeApi, Subscription, refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.config import AzureConfig, read_config
from kubetide.clouds.azure.settings import settings_of
from kubetide.clouds.azure.skus import InstanceType, with_shipped
from kubetide.clouds.common.files import config_text
from kubetide.clouds.common.readings import attempt
from kubetide.clouds.common.rest import HttpSender, Request, Rest, Send
from kubetide.clouds.common.tokens import Renewed, Until
from kubetide.clouds.registry import CloudContext, missing_package
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant

_IMDS = "http://169.254.169.254/metadata/instance/compute/subscriptionId"
_ENDPOINTS: Mapping[str, str] = {
    "azurechinacloud": "https://management.chinacloudapi.cn",
    "azureusgovernment": "https://management.usgovcloudapi.net",
    "azureusgovernmentcloud": "https://management.usgovcloudapi.net",
}
_AUTHORITIES: Mapping[str, str] = {
    "azurechinacloud": "login.chinacloudapi.cn",
    "azureusgovernment": "login.microsoftonline.us",
    "azureusgovernmentcloud": "login.microsoftonline.us",
}
"""Where identities sign in; for the public cloud azure-identity's own default holds, or AZURE_AUTHORITY_HOST."""
_IDENTITY = re.compile(
    r"/subscriptions/.+/resourceGroups/.+/providers/Microsoft\.ManagedIdentity/userAssignedIdentities/.+",
    re.IGNORECASE,
)
"""The resource id of a managed identity; any other text is its client id. Source: cloud-provider-azure, tokens."""
_WITHOUT_EFFECT: Mapping[str, str] = {
    "enableVMsAgentPool": "AKS pools of type VirtualMachines are not managed",
    "cloudProviderRateLimit": "requests have no rate of their own; those that Azure throttles are sent again",
}


@asynccontextmanager
async def connect(context: CloudContext) -> AsyncIterator[Cloud]:
    """Yield the provider. Raises CloudError, CloudNotFound without azure-identity."""
    flags, clock = context.flags, context.clock
    text = await config_text(flags.cloud_config)
    config = read_config(text, context.environment)
    settings = settings_of(config, flags.nodes, flags.node_group_auto_discovery)
    for key, reason in _WITHOUT_EFFECT.items():
        if config.is_on(key):
            context.warn(f"cloud-config: {key} has no effect: {reason}")
    async with HttpSender(context.environment) as send:
        endpoint = _ENDPOINTS.get(config.text("cloud").lower(), ENDPOINT)
        where = Subscription(
            config.text("hostedSubscriptionID") or config.text("subscriptionId") or await _subscription(send),
            config.text("hostedResourceGroup") or config.text("resourceGroup"),
            config.text("hostedResourceProxyURL") or endpoint,
        )
        token = _tokens(config, clock, f"{endpoint}/.default")
        rest = Rest(send, clock, refusal, seed=clock.now(), renew=token.forget, withheld=context.refusal)
        api = ComputeApi(rest, clock, token, where)
        types = None
        if config.is_on("enableDynamicInstanceList"):
            types = await sizes_of(api, config.text("location"), context.warn)
        yield AzureCloud(api, settings, clock, types=types, warn=context.warn)


async def sizes_of(api: ComputeApi, location: str, warn: Callable[[str], None]) -> Mapping[str, InstanceType]:
    """Return the sizes in a location; the shipped ones serve for what the API does not list, as upstream's."""
    listed, problem = await attempt(api.skus(location))
    if not listed:
        warn(
            f"the API lists no sizes of machines in location {location!r}, so only the shipped list serves: {problem}"
        )
    return with_shipped(listed or {})


async def _subscription(send: Send) -> str:
    query = {"api-version": "2020-09-01", "format": "text"}
    response = await send(Request("GET", _IMDS, query, {"Metadata": "true"}))
    if response.status != 200:
        raise CloudError("subscription ID not set, and the instance metadata service does not say it")
    return response.body.decode().strip()


def _tokens(config: AzureConfig, clock: Clock, scope: str) -> Renewed[str]:
    identity = _identity()
    try:
        _credential(identity, config)
    except (ValueError, OSError) as error:
        raise CloudError(f"cloud-config has no valid identity: {error}", cause="Permission") from error

    async def make() -> Until[str]:
        try:
            # A credential of before would give the token of before, even one that was refused.
            token = await asyncio.to_thread(lambda: _credential(identity, config).get_token(scope))
        except Exception as error:  # the library has no base class of its own for what an identity refuses
            raise CloudError(f"no access token: {error}", cause="Permission") from error
        return Until(str(token.token), Instant(int(token.expires_on) * 10**9))

    return Renewed(make, clock)


def _identity() -> Any:
    try:
        return importlib.import_module("azure.identity")
    except ImportError as error:
        raise missing_package("--cloud-provider=azure", "azure") from error


def _credential(identity: Any, config: AzureConfig) -> Any:
    """Return who asks, signed in where the configuration's cloud says.

    Source: cluster-autoscaler cloudprovider/azure, whose tokens come from the cloud environment's endpoint.
    """
    authority = _AUTHORITIES.get(config.text("cloud").lower())
    where = {"authority": authority} if authority else {}
    tenant, client = config.text("tenantId"), config.text("aadClientId")
    if config.is_on("useFederatedWorkloadIdentityExtension"):
        file = config.text("aadFederatedTokenFile")
        given = {"tenant_id": tenant, "client_id": client, "token_file_path": file}
        return identity.WorkloadIdentityCredential(
            **{key: value for key, value in given.items() if value}, **where
        )
    if config.is_on("useManagedIdentityExtension"):
        assigned = config.text("userAssignedIdentityID")
        if _IDENTITY.fullmatch(assigned):
            return identity.ManagedIdentityCredential(identity_config={"resource_id": assigned})
        return identity.ManagedIdentityCredential(client_id=assigned or None)
    if config.text("authMethod") == "cli":
        return identity.AzureCliCredential()
    if config.text("aadClientSecret"):
        return identity.ClientSecretCredential(tenant, client, config.text("aadClientSecret"), **where)
    if config.text("aadClientCertPath"):
        password = config.text("aadClientCertPassword") or None
        return identity.CertificateCredential(
            tenant, client, certificate_path=config.text("aadClientCertPath"), password=password, **where
        )
    raise CloudError("no way to sign in: set aadClientSecret, aadClientCertPath, or an identity")
