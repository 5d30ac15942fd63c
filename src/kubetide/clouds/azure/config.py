"""``--cloud-config`` of Azure: a JSON text, then the environment, then defaults.

Source: cluster-autoscaler cloudprovider/azure, configuration (keys in any case; older keys beat new
ones; a blank variable counts as not set).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from kubetide.ports.errors import CloudError
from kubetide.units.numbers import NumberError, parse_bool, parse_float, parse_integer


class _Key(NamedTuple):
    name: str
    kind: type
    environment: tuple[str, ...] = ()
    older: str = ""
    default: Any = None


def _text(name: str, *environment: str, default: str = "") -> _Key:
    return _Key(name, str, environment, default=default)


def _switch(name: str, *environment: str, older: str = "", default: bool = False) -> _Key:
    return _Key(name, bool, environment, older, default)


def _whole(name: str, *environment: str, older: str = "", default: int = 0) -> _Key:
    return _Key(name, int, environment, older, default)


def _number(name: str, *environment: str, default: float = 0.0) -> _Key:
    return _Key(name, float, environment, default=default)


# In upstream's order, so that of several values that cannot be read the same one is named.
_KEYS = (
    _text("cloud", "ARM_CLOUD"),
    _text("location", "LOCATION"),
    _text("resourceGroup", "ARM_RESOURCE_GROUP"),
    _text("subscriptionId", "ARM_SUBSCRIPTION_ID"),
    _text("tenantId", "ARM_TENANT_ID", "AZURE_TENANT_ID"),
    _text("aadClientId", "ARM_CLIENT_ID", "AZURE_CLIENT_ID"),
    _text("aadClientSecret", "ARM_CLIENT_SECRET"),
    _text("aadClientCertPath", "ARM_CLIENT_CERT_PATH"),
    _text("aadClientCertPassword", "ARM_CLIENT_CERT_PASSWORD"),
    _switch("useManagedIdentityExtension", "ARM_USE_MANAGED_IDENTITY_EXTENSION"),
    _text("userAssignedIdentityID", "ARM_USER_ASSIGNED_IDENTITY_ID"),
    _switch(
        "useFederatedWorkloadIdentityExtension",
        "ARM_USE_FEDERATED_WORKLOAD_IDENTITY_EXTENSION",
        "ARM_USE_WORKLOAD_IDENTITY_EXTENSION",
        older="useWorkloadIdentityExtension",
    ),
    _text("aadFederatedTokenFile", "AZURE_FEDERATED_TOKEN_FILE"),
    _text("authMethod", default="principal"),
    _text("vmType", "ARM_VM_TYPE"),
    _whole(
        "vmssCacheTTLInSeconds",
        "AZURE_VMSS_CACHE_TTL_IN_SECONDS",
        "AZURE_VMSS_CACHE_TTL",
        older="vmssCacheTTL",
    ),
    _whole(
        "vmssVirtualMachinesCacheTTLInSeconds",
        "AZURE_VMSS_VMS_CACHE_TTL_IN_SECONDS",
        "AZURE_VMSS_VMS_CACHE_TTL",
        older="vmssVmsCacheTTL",
    ),
    _whole("vmssVmsCacheJitter", "AZURE_VMSS_VMS_CACHE_JITTER"),
    _whole("getVmssSizeRefreshPeriod", "AZURE_GET_VMSS_SIZE_REFRESH_PERIOD"),
    _whole("maxDeploymentsCount", "AZURE_MAX_DEPLOYMENT_COUNT", default=10),
    _switch("cloudProviderBackoff", "ENABLE_BACKOFF"),
    _switch("enableForceDelete", "AZURE_ENABLE_FORCE_DELETE"),
    _switch("enableVMsAgentPool", "AZURE_ENABLE_VMS_AGENT_POOLS"),
    _switch("enableDynamicInstanceList", "AZURE_ENABLE_DYNAMIC_INSTANCE_LIST"),
    _switch("enableDetailedCSEMessage", "AZURE_ENABLE_DETAILED_CSE_MESSAGE"),
    _switch(
        "enableVmssFlexNodes",
        "AZURE_ENABLE_VMSS_FLEX_NODES",
        "AZURE_ENABLE_VMSS_FLEX",
        older="enableVmssFlex",
    ),
    _switch("enableFastDeleteOnFailedProvisioning", "AZURE_ENABLE_FAST_DELETE_ON_FAILED_PROVISIONING"),
    _switch("enableLabelPredictionsOnTemplate", "AZURE_ENABLE_LABEL_PREDICTIONS_ON_TEMPLATE", default=True),
    _switch("strictCacheUpdates", "AZURE_STRICT_CACHE_UPDATES"),
    _switch("enableVMSSEtag", "AZURE_ENABLE_VMSS_ETAG"),
    _text("clusterName", "CLUSTER_NAME"),
    _text("clusterResourceGroup", "ARM_CLUSTER_RESOURCE_GROUP"),
    _text("armBaseURLForAPClient", "ARM_BASE_URL_FOR_AP_CLIENT"),
    _text("hostedSubscriptionID", "HOSTED_SUBSCRIPTION_ID"),
    _text("hostedResourceGroup", "HOSTED_RESOURCE_GROUP"),
    _text("hostedResourceProxyURL", "HOSTED_RESOURCE_PROXY_URL"),
    _whole("cloudProviderBackoffRetries", "BACKOFF_RETRIES", default=6),
    _number("cloudProviderBackoffExponent", "BACKOFF_EXPONENT", default=1.5),
    _whole("cloudProviderBackoffDuration", "BACKOFF_DURATION", default=5),
    _number("cloudProviderBackoffJitter", "BACKOFF_JITTER", default=1.0),
    _switch("cloudProviderRateLimit", "CLOUD_PROVIDER_RATE_LIMIT"),
    _number("cloudProviderRateLimitQPS", "RATE_LIMIT_READ_QPS"),
    _whole("cloudProviderRateLimitBucket", "RATE_LIMIT_READ_BUCKETS"),
    _number("cloudProviderRateLimitQPSWrite", "RATE_LIMIT_WRITE_QPS"),
    _whole("cloudProviderRateLimitBucketWrite", "RATE_LIMIT_WRITE_BUCKETS"),
    _text("deployment", "ARM_DEPLOYMENT"),
)
_READERS: Mapping[type, tuple[Callable[[str], Any], str]] = {
    bool: (parse_bool, "ParseBool"),
    int: (parse_integer, "ParseInt"),
    float: (parse_float, "ParseFloat"),
}
_OVER_INT32, _OVER_UINT32 = 1 << 31, 1 << 32
_OF_64_BITS = {"maxDeploymentsCount"}
_BACKOFF = ("Retries", "Exponent", "Duration", "Jitter")
_CLOUDS = {
    "",
    "azurecloud",
    "azurepubliccloud",
    "azurechinacloud",
    "azureusgovernment",
    "azureusgovernmentcloud",
}


class AzureConfig(NamedTuple):
    """The values in force, by their keys."""

    values: Mapping[str, Any]

    def text(self, key: str) -> str:
        return str(self.values[key])

    def is_on(self, key: str) -> bool:
        return bool(self.values[key])

    def whole(self, key: str) -> int:
        return int(self.values[key])


def read_config(file: str, environment: Mapping[str, str]) -> AzureConfig:
    """Return the configuration of a file's text (may be empty) and the environment. Raises CloudError."""
    values = {key.name: key.default for key in _KEYS}
    values |= _of_file(file)
    for key in _KEYS:
        name = key.name.removeprefix("cloudProviderBackoff")
        if name in _BACKOFF and not values["cloudProviderBackoff"]:
            continue
        for variable in key.environment:
            text = environment.get(variable, "")
            if text.strip():
                values[key.name] = _read(key, variable, text)
    for key in _KEYS:
        if key.kind is str:
            values[key.name] = values[key.name].strip()
    values["vmType"] = values["vmType"].lower() or "vmss"
    values["maxDeploymentsCount"] = values["maxDeploymentsCount"] or 10
    _check(values)
    return AzureConfig(values)


def _of_file(text: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    failed = "failed to unmarshal config body: "
    try:
        body = msgspec.json.decode(text.encode(), type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise CloudError(f"{failed}{error}") from error
    given = {name.lower(): value for name, value in body.items() if value is not None}
    found: dict[str, Any] = {}
    for key in _KEYS:
        for name in (key.name, key.older):
            if not name or name.lower() not in given:
                continue
            value = given[name.lower()]
            fits = isinstance(value, int | float) if key.kind is float else isinstance(value, key.kind)
            if not fits or (isinstance(value, bool) and key.kind is not bool):
                raise CloudError(f"{failed}{name} is {value!r}, expected {key.kind.__name__}")
            if name == key.older and key.kind is int and value >= _OVER_UINT32:
                raise CloudError(f"{name[0].upper()}{name[1:]} value {value} is too large")
            found[key.name] = value
    return found


def _read(key: _Key, variable: str, text: str) -> Any:
    if key.kind is str:
        return text
    read, function = _READERS[key.kind]
    failed = f'failed to parse {variable} "{text}": strconv.{function}: '
    try:
        value = read(text)
    except NumberError as error:
        raise CloudError(f"{failed}{error}") from error
    if key.kind is int and key.name not in _OF_64_BITS and not -_OVER_INT32 <= value < _OVER_INT32:
        raise CloudError(f'{failed}parsing "{text}": value out of range')
    return value


def _check(values: Mapping[str, Any]) -> None:
    """Raise CloudError where something needed is missing or two things exclude each other, in upstream's order."""
    if values["vmType"] == "standard":
        raise CloudError("vmType standard: no deployment parameters file; kubetide supports vmType vmss only")
    managed, workload = (
        values["useManagedIdentityExtension"],
        values["useFederatedWorkloadIdentityExtension"],
    )
    if not values["resourceGroup"]:
        raise CloudError("resource group not set; give resourceGroup in cloud-config, or ARM_RESOURCE_GROUP")
    if managed and workload:
        raise CloudError(
            "you can not combine both managed identity and workload identity as an authentication mechanism"
        )
    if values["vmType"] != "vmss":
        raise CloudError(f"unsupported VM type: {values['vmType']}")
    if not managed:
        _check_principal(values, workload=workload)
    if values["cloudProviderBackoff"] and not values["cloudProviderBackoffRetries"]:
        raise CloudError("Cloud provider backoff is enabled but retries are not set")
    if values["cloud"].lower() not in _CLOUDS:
        raise CloudError(f"failed to create Azure environment: unknown cloud {values['cloud']}")


def _check_principal(values: Mapping[str, Any], *, workload: bool) -> None:
    if not workload and not values["tenantId"]:
        raise CloudError("tenant ID not set; give tenantId in cloud-config, or ARM_TENANT_ID")
    if values["authMethod"] not in {"", "principal", "cli"}:
        raise CloudError(f"unsupported authorization method: {values['authMethod']}")
    if values["authMethod"] != "cli" and not workload and not values["aadClientId"]:
        raise CloudError("ARM Client ID not set; give aadClientId in cloud-config, or ARM_CLIENT_ID")
