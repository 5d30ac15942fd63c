"""The calls to Compute Engine that the provider makes, as typed methods over ``Rest``.

Paths are those of compute/v1. Reads follow all pages; changes are sent once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import msgspec

from kubetide.clouds.common.entries import Entries, check_amounts, read_entries
from kubetide.clouds.common.pagination import PageTokens
from kubetide.clouds.common.rest import (
    UNREADABLE,
    NoAnswer,
    Request,
    Response,
    Rest,
    Token,
    decoded,
    decoded_without_nulls,
    json_request,
    retry_after,
)
from kubetide.clouds.common.scaling_policies import needs_right
from kubetide.clouds.gce.autoscalers import Autoscaler
from kubetide.clouds.gce.instances import AttemptErrors, ListedInstance, ManagedInstance, classify
from kubetide.clouds.gce.machine_types import MachineType
from kubetide.clouds.gce.managers import Manager
from kubetide.clouds.gce.references import ROOT, GceRef, Scope, TemplateRef, instance_url, last_part
from kubetide.clouds.gce.template import InstanceTemplate
from kubetide.objects.base import ApiStruct, Json
from kubetide.ports.clock import Clock
from kubetide.ports.errors import CloudCause, CloudError
from kubetide.units.time import Duration, milliseconds, minutes, seconds

T = TypeVar("T")
_MIB = 1 << 20
_WAIT_IN_ALL, _CREATION_IN_ALL, _WAIT_PAUSE = seconds(20), minutes(2), milliseconds(100)
_NOT_FOUND = {"notFound", "404"}
_THROTTLED = {"rateLimitExceeded", "userRateLimitExceeded", "resourceOperationRateExceeded"}


class _Named(ApiStruct):
    name: str = ""


class _Page(ApiStruct, Generic[T]):
    """Part of a list; a group's instances have a name of their own there."""

    items: tuple[T, ...] | None = None
    managed_instances: tuple[T, ...] | None = None
    next_page_token: str = ""


class _Accelerators(ApiStruct):
    guest_accelerator_count: int = 0


class _Machine(ApiStruct):
    guest_cpus: int = 0
    memory_mb: int = 0
    accelerators: tuple[_Accelerators, ...] | None = None
    architecture: str = ""

    def __post_init__(self) -> None:
        check_amounts(self.guest_cpus, self.memory_mb)


class _Region(ApiStruct):
    zones: tuple[str, ...] | None = None


class _Operation(ApiStruct):
    name: str = ""
    operation_type: str = ""
    status: str = ""
    error: AttemptErrors | None = None


class _ErrorItem(ApiStruct):
    reason: str = ""


class _ErrorBody(ApiStruct):
    message: str = ""
    errors: tuple[_ErrorItem, ...] | None = None


class _Errors(ApiStruct):
    error: _ErrorBody | None = None


def refusal(response: Response) -> CloudError | None:
    """Return what an answer of the API refuses, None for a good answer."""
    if response.status < 300:
        return None
    try:
        body = msgspec.json.decode(response.body, type=_Errors).error
    except UNREADABLE:
        body = None
    reason = next((one.reason for one in (body.errors if body else None) or ()), "")
    message = body.message if body else response.body.decode("utf-8", "replace")[:200]
    return CloudError(
        f"googleapi: Error {response.status}: {message}" + (f", {reason}" if reason else ""),
        error_code=reason or str(response.status),
        cause=_cause(response.status, reason),
        retry_after=retry_after(response.headers),
    )


def _cause(status: int, reason: str) -> CloudCause:
    if status == 429 or reason in _THROTTLED:
        return "Throttled"
    if reason == "quotaExceeded":
        return "Quota"
    return "Permission" if status in {401, 403} else "Other"


class ComputeApi:
    """Compute Engine of one project.

    Args:
        rest: Sends the requests.
        clock: For waiting on operations.
        token: Makes access tokens; None sends none, for a test's own server.
        project: Whose regions and zones are listed.
        root: Where the API is.
    """

    def __init__(
        self, rest: Rest, clock: Clock, token: Token | None, project: str, *, root: str = ROOT
    ) -> None:
        self._rest = rest
        self._clock = clock
        self._token = token
        self._project = project
        self._root = root

    async def zones_of(self, region: str) -> tuple[str, ...]:
        """Return the names of a region's zones."""
        found = await self._get(f"projects/{self._project}/regions/{region}", _Region)
        return tuple(last_part(zone) for zone in found.zones or ())

    async def group_names(self, zone: str, name_filter: str) -> list[str]:
        """Return the names of a zone's instance groups that the filter lets through."""
        path = f"projects/{self._project}/zones/{zone}/instanceGroups"
        found = await self._list("GET", path, _Page[_Named], {"filter": name_filter})
        return [one.name for one in found]

    async def managers(self, scope: Scope) -> list[Manager]:
        """Return all managed groups of a zone, or of a region."""
        return await self._list("GET", f"{scope.path}/instanceGroupManagers", _Page[Manager])

    async def manager(self, ref: GceRef) -> Manager:
        """Return one managed group. Raises CloudError, as upstream with a type of its own where it does not exist."""
        try:
            return await self._get(_manager_path(ref), Manager)
        except CloudError as error:
            if error.error_code in _NOT_FOUND:
                error.error_type = "nodeGroupDoesNotExistError"
            raise

    async def managed_instances(self, ref: GceRef) -> list[ManagedInstance]:
        """Return a group's instances with what happens to them."""
        return await self._list("POST", f"{_manager_path(ref)}/listManagedInstances", _Page[ManagedInstance])

    async def instances(self, project: str, zone: str) -> list[ListedInstance]:
        """Return all instances of a zone."""
        return await self._list("GET", f"projects/{project}/zones/{zone}/instances", _Page[ListedInstance])

    async def autoscalers(self, scope: Scope) -> Entries[Autoscaler]:
        """Return all autoscalers of a zone or region. Raises CloudError that names the right where it is missing."""
        with needs_right("compute.autoscalers.list"):
            listed = await self._list("GET", f"{scope.path}/autoscalers", _Page[Json])
            return read_entries(listed, Autoscaler, "name")

    async def template(self, project: str, region: str, template: TemplateRef) -> InstanceTemplate:
        """Return an instance template."""
        return await self._get(_template_path(project, region, template), InstanceTemplate)

    async def template_model(self, project: str, region: str, template: TemplateRef) -> Json:
        """Return an instance template whole."""
        return await self._get(_template_path(project, region, template), Json)

    async def manager_model(self, ref: GceRef) -> Json:
        """Return one managed group whole."""
        return await self._get(_manager_path(ref), Json)

    async def machine_type(self, project: str, zone: str, name: str) -> MachineType:
        """Return a machine type of a zone."""
        found = await self._get(f"projects/{project}/zones/{zone}/machineTypes/{name}", _Machine)
        return MachineType(
            name=name,
            cpu=found.guest_cpus,
            memory_bytes=found.memory_mb * _MIB,
            accelerators=sum(one.guest_accelerator_count for one in found.accelerators or ()),
            architecture=found.architecture,
        )

    async def create_instances(self, ref: GceRef, names: Sequence[str]) -> None:
        """Create instances of these names, and wait for the order to be carried out."""
        body = {"instances": [{"name": name} for name in names]}
        await self._change(ref, "createInstances", body=body)

    async def delete_instances(self, ref: GceRef, instances: Sequence[GceRef]) -> None:
        """Delete instances, which lowers the target, and wait for the order to be carried out."""
        urls = [instance_url(one) for one in instances]
        body = {"instances": urls, "skipInstancesOnValidationError": True}
        await self._change(ref, "deleteInstances", body=body)

    async def resize(self, ref: GceRef, size: int) -> None:
        """Set the target, and wait for the order to be carried out."""
        await self._change(ref, "resize", query={"size": str(size)})

    async def insert_template(self, ref: GceRef, template: TemplateRef, body: Json) -> None:
        """Create an instance template for a group, and wait until it is there."""
        path, _, _ = self.template_path(ref, template).rpartition("/")
        await self._order("POST", path, f"creation of the template of {ref}", body=body)

    async def delete_template(self, ref: GceRef, template: TemplateRef) -> None:
        """Delete the instance template of a group, and wait until it is gone."""
        await self._order("DELETE", self.template_path(ref, template), f"deletion of the template of {ref}")

    async def insert_group(self, ref: GceRef, body: Json) -> None:
        """Create a managed group, and wait until it is there."""
        path, _, _ = _manager_path(ref).rpartition("/")
        await self._order("POST", path, f"creation of {ref}", body=body)

    async def delete_group(self, ref: GceRef) -> None:
        """Delete a managed group with all its instances, and wait until it is gone."""
        await self._order("DELETE", _manager_path(ref), f"deletion of {ref}")

    def template_path(self, ref: GceRef, template: TemplateRef) -> str:
        """Return what names an instance template in a request for a group."""
        return _template_path(ref.project, ref.region, template)

    async def _order(self, method: str, path: str, what: str, *, body: Json | None = None) -> None:
        request = await self._request(method, path, {}, body)
        operation = _operation(await self._rest.change(request), what)
        scope, _, _ = path.partition("/instance")
        await self._wait(scope, what, operation, within=_CREATION_IN_ALL)

    async def _change(
        self,
        ref: GceRef,
        verb: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> None:
        request = await self._request("POST", f"{_manager_path(ref)}/{verb}", query or {}, body)
        what = f"{verb} of {ref}"
        operation = _operation(await self._rest.change(request), what)
        await self._wait(ref.scope.path, what, operation, within=_WAIT_IN_ALL)

    async def _wait(self, scope: str, what: str, operation: _Operation, *, within: Duration) -> None:
        """Wait until the operation is done. Raises CloudError where it failed or took longer."""
        start = self._clock.monotonic()
        path = f"{scope}/operations/{operation.name}/wait"
        while operation.status != "DONE":
            if Duration(self._clock.monotonic() - start) > within:
                raise CloudError(
                    f"{what}: operation {operation.name} is not done after {within // seconds(1)} s",
                    may_be_done=True,
                )
            # The API holds its answer for longer than a connection is kept open.
            try:
                response = await self._rest.read(lambda: self._request("POST", path, {}))
                operation = _operation(response, what)
            except NoAnswer:
                pass
            except CloudError as error:
                error.may_be_done = True
                raise
            if operation.status != "DONE":
                await self._clock.sleep(_WAIT_PAUSE)
        errors = (operation.error.errors if operation.error else None) or ()
        if errors:
            first = errors[0]
            found = classify(first.code, first.message, "", None)
            detail = msgspec.json.encode(operation.error).decode()
            kind = operation.operation_type or what
            raise CloudError(
                f"error while waiting for operation {kind}/{operation.name}: {detail}",
                error_code=first.code,
                error_class=found.error_class if found else "Other",
                cause=found.cause if found else "Other",
            )

    async def _get(self, path: str, kind: type[T]) -> T:
        response = await self._rest.read(lambda: self._request("GET", path, {}))
        return decoded(response, kind)

    async def _list(
        self, method: str, path: str, kind: type[_Page[T]], query: Mapping[str, str] = {}
    ) -> list[T]:
        found: list[T] = []
        asked, tokens = dict(query), PageTokens(path)
        while True:
            page = decoded(await self._rest.read(partial(self._request, method, path, asked)), kind)
            found += page.items or page.managed_instances or ()
            if not page.next_page_token:
                return found
            tokens.check(page.next_page_token)
            asked = {**query, "pageToken": page.next_page_token}

    async def _request(
        self, method: str, path: str, query: Mapping[str, str], body: Mapping[str, Any] | None = None
    ) -> Request:
        return await json_request(self._token, method, f"{self._root}/{path}", query, body)


def _operation(response: Response, what: str) -> _Operation:
    """Return the operation that an order began. Raises CloudError that names the order: it may be carried out."""
    try:
        return decoded_without_nulls(response.body, _Operation)
    except UNREADABLE as error:
        raise CloudError(
            f"{what}: it may be carried out, but the API's answer cannot be read: {error}", may_be_done=True
        ) from error


def _manager_path(ref: GceRef) -> str:
    return f"{ref.scope.path}/instanceGroupManagers/{ref.name}"


def _template_path(project: str, region: str, template: TemplateRef) -> str:
    scope = f"regions/{region}" if template.is_regional else "global"
    return f"projects/{project}/{scope}/instanceTemplates/{template.name}"


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yield the items in order, at most ``size`` at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
