"""The calls to Azure Resource Manager that the provider makes, as typed methods over ``Rest``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import msgspec

from kubetide.clouds.azure.autoscale import AutoscaleSetting
from kubetide.clouds.azure.model import Machine, ScaleSet
from kubetide.clouds.azure.skus import InstanceType
from kubetide.clouds.common.entries import Entries, read_entries
from kubetide.clouds.common.pagination import PageTokens
from kubetide.clouds.common.rest import (
    UNREADABLE,
    Request,
    Response,
    Rest,
    Token,
    decoded,
    json_request,
    retry_after,
)
from kubetide.clouds.common.scaling_policies import needs_right
from kubetide.objects.base import ApiStruct, Json
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.time import Duration, minutes, seconds

T = TypeVar("T")
ENDPOINT = "https://management.azure.com"
_COMPUTE, _SKUS, _AUTOSCALE = "2025-04-01", "2021-07-01", "2022-10-01"
_WAIT_IN_ALL, _WAIT_PAUSE = minutes(30), seconds(10)
_CAPACITY = {
    "AllocationFailed",
    "ZonalAllocationFailed",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
    "SkuNotAvailable",
}
_GIB_IN_MIB = 1024


class _Error(ApiStruct):
    code: str = ""
    message: str = ""


class _Errors(ApiStruct):
    error: _Error | None = None


class _Operation(ApiStruct):
    status: str = ""
    error: _Error | None = None


class _Capability(ApiStruct):
    name: str = ""
    value: str = ""


class _ResourceSku(ApiStruct):
    name: str = ""
    resource_type: str = ""
    capabilities: tuple[_Capability, ...] | None = None


class OperationResult(NamedTuple):
    """Whether an operation has come to its end, and why it failed if it did."""

    is_done: bool
    error: CloudError | None = None


class Subscription(NamedTuple):
    """Where the sets are: subscription and resource group, and the endpoint of its API."""

    id: str
    resource_group: str
    endpoint: str = ENDPOINT


def refusal(response: Response) -> CloudError | None:
    """Return what an answer of the API refuses, None for a good answer."""
    if response.status < 300:
        return None
    try:
        error = msgspec.json.decode(response.body, type=_Errors).error or _Error()
    except UNREADABLE:
        error = _Error(message=response.body.decode("utf-8", "replace")[:200])
    return cloud_error(error.code or str(response.status), error.message, response)


def cloud_error(code: str, message: str, response: Response | None = None) -> CloudError:
    """Return the error of one of Azure's codes."""
    status = response.status if response else 0
    return CloudError(
        f"{code} ({status}): {message}" if status else f"{code}: {message}",
        error_code=code,
        cause=_cause(code, message, status),
        retry_after=retry_after(response.headers) if response else None,
    )


def _cause(code: str, message: str, status: int) -> CloudCause:
    if status == 429 or code == "TooManyRequests":
        return "Throttled"
    if code in _CAPACITY:
        return "OutOfCapacity"
    if code == "QuotaExceeded" or (code == "OperationNotAllowed" and "quota" in message.lower()):
        return "Quota"
    if code in {"AuthorizationFailed", "LinkedAuthorizationFailed"} or status in {401, 403}:
        return "Permission"
    return "Other"


class ComputeApi:
    """Scale sets of one resource group.

    Args:
        rest: Sends the requests.
        clock: For waiting on operations.
        token: Makes access tokens; None sends none, for a test's own server.
        where: Subscription and resource group.
    """

    def __init__(self, rest: Rest, clock: Clock, token: Token | None, where: Subscription) -> None:
        self._rest, self._clock, self._token, self._where = rest, clock, token, where
        self._group = f"/subscriptions/{where.id}/resourceGroups/{where.resource_group}"
        self._sets = f"{self._group}/providers/Microsoft.Compute/virtualMachineScaleSets"

    async def scale_sets(self) -> Entries[ScaleSet]:
        """Return all sets of the resource group."""
        return read_entries(await self._entries(self._sets), ScaleSet, "name")

    async def scale_set(self, name: str) -> ScaleSet:
        """Return one set."""
        response = await self._rest.read(lambda: self._request("GET", f"{self._sets}/{name}"))
        return decoded(response, ScaleSet)

    async def model(self, name: str) -> Json:
        """Return one set whole, with its user data; what Azure never shows is not there: custom data, passwords."""
        query = {"$expand": "userData"}
        response = await self._rest.read(lambda: self._request("GET", f"{self._sets}/{name}", query=query))
        return decoded(response, Json)

    async def create_set(self, name: str, model: Json) -> str:
        """Begin to create a set, and return the URL of the operation; one that there is stays as it is."""
        headers = {"If-None-Match": "*"}
        request = await self._request("PUT", f"{self._sets}/{name}", body=model, headers=headers)
        response = await self._rest.change(request)
        return response.headers.get("azure-asyncoperation", "")

    async def delete_set(self, name: str) -> None:
        """Delete a set with all that is in it. Returns when the order is accepted."""
        await self._rest.change(await self._request("DELETE", f"{self._sets}/{name}"))

    async def machines(self, scale_set: ScaleSet) -> list[Machine]:
        """Return the machines of a set: with instance views of a uniform one, without of a flexible one."""
        if scale_set.is_flexible:
            path = f"{self._group}/providers/Microsoft.Compute/virtualMachines"
            query = {"$filter": f"'virtualMachineScaleSet/id' eq '{scale_set.id}'"}
        else:
            path, query = f"{self._sets}/{scale_set.name}/virtualMachines", {"$expand": "instanceView"}
        return await self._list(path, Machine, query)

    async def set_capacity(self, scale_set: ScaleSet, capacity: int, *, etag: str = "") -> str:
        """Ask for that many machines; return the URL of the operation, empty where it is done."""
        sku = scale_set.sku
        body: dict[str, Any] = {
            "name": scale_set.name,
            "location": scale_set.location,
            "sku": {"name": sku and sku.name, "tier": sku and sku.tier, "capacity": capacity},
        }
        if scale_set.extended_location is not None:
            body["extendedLocation"] = scale_set.extended_location
        headers = {"If-Match": etag} if etag else {}
        request = await self._request("PUT", f"{self._sets}/{scale_set.name}", body=body, headers=headers)
        response = await self._rest.change(request)
        return response.headers.get("azure-asyncoperation", "")

    async def delete_machines(self, name: str, instance_ids: Sequence[str], *, force: bool) -> str:
        """Order the deletion of machines, which lowers the set's capacity; return the URL of the operation."""
        request = await self._request(
            "POST",
            f"{self._sets}/{name}/delete",
            query={"forceDeletion": "true" if force else "false"},
            body={"instanceIds": list(instance_ids)},
        )
        response = await self._rest.change(request)
        return response.headers.get("azure-asyncoperation", "")

    async def operation_error(self, url: str, *, within: Duration = _WAIT_IN_ALL) -> CloudError | None:
        """Wait until an operation ends, so long at most; return why it failed, None if it succeeded."""
        start = self._clock.monotonic()
        while True:
            result = await self.operation_result(url)
            if result.is_done:
                return result.error
            if Duration(self._clock.monotonic() - start) > within:
                return CloudError(f"operation {url} is not done after {within // minutes(1)} minutes")
            await self._clock.sleep(_WAIT_PAUSE)

    async def operation_result(self, url: str) -> OperationResult:
        """Return how far an operation is. Raises CloudError where that cannot be read."""
        operation = decoded(await self._rest.read(lambda: self._request("GET", url)), _Operation)
        if operation.status == "Succeeded":
            return OperationResult(is_done=True)
        if operation.status in {"Failed", "Canceled"}:
            error = operation.error or _Error(code=operation.status)
            return OperationResult(is_done=True, error=cloud_error(error.code, error.message))
        return OperationResult(is_done=False)

    async def skus(self, location: str) -> dict[str, InstanceType]:
        """Return the sizes of machines in a location, by name in lower case, without those that lack CPUs or memory."""
        path = f"/subscriptions/{self._where.id}/providers/Microsoft.Compute/skus"
        query = {"$filter": f"location eq '{location}'"}
        listed = await self._list(path, _ResourceSku, query, version=_SKUS)
        sizes = (_size(one) for one in listed if one.resource_type == "virtualMachines")
        return {size.name.lower(): size for size in sizes if size.vcpu and size.memory_mib}

    async def autoscale_settings(self) -> Entries[AutoscaleSetting]:
        """Return the resource group's autoscale settings. Raises CloudError that names the right where it is missing."""
        path = f"{self._group}/providers/Microsoft.Insights/autoscalesettings"
        with needs_right("Microsoft.Insights/autoscalesettings/read"):
            return read_entries(await self._entries(path, version=_AUTOSCALE), AutoscaleSetting, "name")

    async def _list(
        self, path: str, kind: type[T], query: Mapping[str, str] = {}, *, version: str = _COMPUTE
    ) -> list[T]:
        entries = read_entries(await self._entries(path, query, version=version), kind, "name")
        for problem in entries.problems.values():
            raise CloudError(problem)
        return entries.found

    async def _entries(
        self, path: str, query: Mapping[str, str] = {}, *, version: str = _COMPUTE
    ) -> list[Json]:
        found: list[Json] = []
        url, asked, api_version, tokens = path, query, version, PageTokens(path)
        while url:
            tokens.check(url)
            ask = partial(self._request, "GET", url, query=asked, version=api_version)
            response = await self._rest.read(ask)
            page = decoded(response, _Page)
            if page.value is None:
                # Else all that there is would count as gone.
                raise CloudError(f"{path}: the answer has no list")
            found.extend(page.value)
            url, asked, api_version = page.next_link or "", {}, ""
        return found

    async def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] = {},
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] = {},
        version: str = _COMPUTE,
    ) -> Request:
        is_link = path.startswith(("https://", "http://"))
        url = path if is_link else self._where.endpoint + path
        asked = query if is_link or not version else {**query, "api-version": version}
        return await json_request(self._token, method, url, asked, body, headers)


class _Page(ApiStruct):
    value: tuple[Json, ...] | None = None
    next_link: str | None = None


def _size(sku: _ResourceSku) -> InstanceType:
    by_name = {one.name: one.value for one in sku.capabilities or ()}

    def number(name: str) -> float:
        try:
            return float(by_name.get(name, "0"))
        except ValueError:
            return 0.0

    return InstanceType(
        name=sku.name,
        vcpu=int(number("vCPUs")),
        memory_mib=int(number("MemoryGB") * _GIB_IN_MIB),
        gpu=int(number("GPUs")),
        arch="arm64" if by_name.get("CpuArchitectureType", "").lower() == "arm64" else "amd64",
    )
