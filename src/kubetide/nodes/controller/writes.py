"""Writes statuses of capacity requests once a step is over."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from kubetide.nodes.decision import CopyTemplate, DeleteRequest, Write, WriteStatus
from kubetide.nodes.facts.capacity import CAPACITY_KIND_OF
from kubetide.nodes.facts.objects import KnownKey
from kubetide.nodes.state import State
from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    CAPACITY_BUFFERS,
    DEPLOYMENTS,
    JOBS,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    STATEFUL_SETS,
    Kind,
)
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import AlreadyExists, ApiError, Forbidden, NotFound, Withheld

_SOURCES: Final[dict[str, Kind[Any]]] = {
    kind.plural: kind
    for kind in (PODS, POD_TEMPLATES, DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS, JOBS, REPLICATION_CONTROLLERS)
}
_TOKEN_VOLUME: Final = "kube-api-access-"  # noqa: S105  # the prefix of a volume's name
_DRY_RUN_NAME: Final = "fake-pod-"
_DRY_RUN_POD: Final = re.compile(f"{_DRY_RUN_NAME}[a-z0-9]+")
# The words of kube-apiserver's RBAC authorizer (v1.36); what admission forbids has others.
_NO_RIGHT: Final = 'cannot create resource "pods"'
_NOT_OF_TEMPLATES: Final = ("nodeName", "hostname", "subdomain", "ephemeralContainers")


class WrittenStatus(NamedTuple):
    """An object as it was when its status had been written, and the version over which that was done."""

    item: Any
    over: str


class Writer:
    """Carries out writes; a failed write is reported, so that the object is read and decided on again."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.failures = 0
        self.unwritten: dict[KnownKey, None] = {}
        """Objects whose last write failed; none that are gone."""
        self.written: dict[KnownKey, WrittenStatus] = {}
        """Objects whose statuses the last call of ``write`` has written."""

    async def write(self, writes: Sequence[Write]) -> dict[KnownKey, str]:
        """Carry out the writes in order; return the errors of those that failed, empty where writing is withheld."""
        failed: dict[KnownKey, str] = {}
        self.written = {}
        for one in writes:
            key = _key(one)
            self.unwritten.pop(key, None)
            try:
                await self._write(one)
            except Withheld:
                failed[key] = ""
            except ApiError as error:
                self.failures += 1
                # The pod of each dry run has another name: with it the buffer's condition would change in every tick.
                failed[key] = _DRY_RUN_POD.sub(_DRY_RUN_NAME.rstrip("-"), str(error))
                if not isinstance(error, NotFound):
                    self.unwritten[key] = None
        return failed

    async def _write(self, one: Write) -> None:
        match one:
            case WriteStatus():
                status: Json = msgspec.json.decode(one.status)
                body: Json = {"metadata": {"resourceVersion": one.version}, "status": status}
                item = await self._cluster.patch(
                    CAPACITY_KIND_OF[one.resource],
                    one.name,
                    body,
                    namespace=one.namespace,
                    subresource="status",
                )
                self.written[_key(one)] = WrittenStatus(item, one.version)
            case DeleteRequest():
                try:
                    await self._cluster.delete(
                        PROVISIONING_REQUESTS, one.name, namespace=one.namespace, uid=one.uid
                    )
                except NotFound:
                    return
            case CopyTemplate():
                await self._copy(one)

    async def _copy(self, one: CopyTemplate) -> None:
        source = await self._cluster.get(
            _SOURCES[one.source].untyped, one.source_name, namespace=one.namespace
        )
        if one.source == PODS.plural:
            template = _template_of_pod(source)
        else:
            holder = source if one.source == POD_TEMPLATES.plural else source["spec"]
            template = holder.get("template") or {}
            if one.dry_run:
                template = await self._admitted(template, one.namespace)
        owner: Json = {
            "apiVersion": CAPACITY_BUFFERS.api_version,
            "kind": CAPACITY_BUFFERS.kind,
            "name": one.buffer,
            "uid": one.buffer_uid,
            "controller": True,
        }
        body: Json = {
            "metadata": {"name": one.name, "namespace": one.namespace, "ownerReferences": [owner]},
            "template": template,
        }
        kind = POD_TEMPLATES.untyped
        try:
            await self._cluster.create(kind, body, namespace=one.namespace)
        except AlreadyExists:
            there = await self._cluster.get(kind, one.name, namespace=one.namespace)
            # It may be an earlier buffer's, or nobody's: it has to go with this buffer, and not before.
            metadata = {**there["metadata"], "ownerReferences": [owner]}
            changed = {**there, "metadata": metadata, "template": template}
            await self._cluster.replace(kind, changed, namespace=one.namespace)

    async def _admitted(self, template: Json, namespace: str) -> Json:
        """Return the template of the pod that the API server would make of this one: with defaults, and what webhooks add.

        Without the right to create pods it stays as it is.
        """
        metadata = template.get("metadata") or {}
        told = {name: metadata[name] for name in ("labels", "annotations") if metadata.get(name)}
        body: Json = {"metadata": {"generateName": _DRY_RUN_NAME, **told}, "spec": template.get("spec") or {}}
        try:
            pod = await self._cluster.create(PODS.untyped, body, namespace=namespace, dry_run=True)
        except Forbidden as error:
            if _NO_RIGHT in str(error):
                return template
            raise
        return _template_of_pod(pod)


def request_processed(state: State, writes: Sequence[Write], failed: Collection[KnownKey]) -> bool:
    """Return whether a ProvisioningRequest was picked, answered or failed, and its status was written.

    Then the next tick begins at once. A request whose status could not be written would be picked again and again.

    Source: Cluster Autoscaler, --frequent-loops-enabled.
    """
    requests = None if state.tick is None else state.tick.requests
    if requests is None or not requests.processed:
        return False
    statuses = (one for one in writes if isinstance(one, WriteStatus))
    return any(one.resource == PROVISIONING_REQUESTS.plural and _key(one) not in failed for one in statuses)


def _template_of_pod(pod: Json) -> Json:
    """Return the template that a pod could be of: without its node, its status and the token that it was given."""
    meta, spec = pod["metadata"], pod["spec"]
    made = {name: value for name, value in spec.items() if name not in _NOT_OF_TEMPLATES}
    for name in ("containers", "initContainers"):
        if made.get(name):
            made[name] = [_without_token(one) for one in made[name]]
    volumes = [one for one in spec.get("volumes") or () if not one["name"].startswith(_TOKEN_VOLUME)]
    made.pop("volumes", None)
    if volumes:
        made["volumes"] = volumes
    metadata = {name: meta[name] for name in ("labels", "annotations") if meta.get(name)}
    return {"metadata": metadata, "spec": made}


def _without_token(container: Json) -> Json:
    mounts = container.get("volumeMounts")
    if not mounts:
        return container
    return {**container, "volumeMounts": [one for one in mounts if not one["name"].startswith(_TOKEN_VOLUME)]}


def _key(one: Write) -> KnownKey:
    match one:
        case WriteStatus():
            return one.resource, one.namespace, one.name
        case DeleteRequest():
            return PROVISIONING_REQUESTS.plural, one.namespace, one.name
        case CopyTemplate():
            return POD_TEMPLATES.plural, one.namespace, one.name
