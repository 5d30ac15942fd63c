"""REST semantics over the store, apart from any web server.

``Rest.handle`` is the only way in, for the client in the same process as for an HTTP face; it is
synchronous, so every request is atomic.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from kubetide.embedded.store import metadata, pods
from kubetide.embedded.store.admission import SYSTEM_PRIORITY_CLASSES
from kubetide.embedded.store.copying import copy_json
from kubetide.embedded.store.errors import no_such_resource, not_found
from kubetide.embedded.store.request import Options, Request, Response
from kubetide.embedded.store.revision import Revision
from kubetide.embedded.store.scale import replicas_in, scale_of
from kubetide.embedded.store.selection import Selection
from kubetide.embedded.store.store import Store
from kubetide.embedded.store.writes import Writer
from kubetide.objects.base import Json
from kubetide.objects.kinds import NAMESPACES, PRIORITY_CLASSES, Kind
from kubetide.objects.shapes import shape_of
from kubetide.ports.clock import Clock
from kubetide.ports.errors import BadRequest, MethodNotAllowed
from kubetide.units.patch import PatchError, json_patch, merge_patch
from kubetide.units.shapes import PLAIN
from kubetide.units.strategic import StrategicPatchError, strategic_merge

_FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Rest:
    """The API server's semantics: what each verb does to each kind."""

    def __init__(self, store: Store, clock: Clock, seed: int) -> None:
        """Creates what every cluster has: the system namespaces and priority classes."""
        self.store = store
        self._clock = clock
        self._writer = Writer(store, clock, seed)
        for name in _FIRST_NAMESPACES:
            self._found(NAMESPACES, {"metadata": {"name": name}})
        for name, value in SYSTEM_PRIORITY_CLASSES.items():
            self._found(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})

    def handle(self, request: Request) -> Response:
        """Answers a request. Raises the ApiError that refuses it."""
        registered = self.store.registered(request.kind)
        if registered is not request.kind:
            request = replace(request, kind=registered)
        if request.subresource:
            return self._handle_subresource(request)
        kind, options = request.kind, request.options
        verb = request.verb
        if verb == "get":
            return self._answer(self._get(request))
        if verb == "list":
            selection = Selection(kind, request.namespace, options.labels, options.fields)
            return Response(200, self.store.version, listing=self.store.select(kind, selection))
        if verb == "watch":
            selection = Selection(kind, request.namespace, options.labels, options.fields)
            watcher = self.store.watch(kind, selection, _version_in(options.resource_version))
            return Response(200, self.store.version, watcher=watcher)
        if verb == "create":
            created = self._writer.create(kind, request.body, request.namespace, dry_run=options.dry_run)
            return self._answer(created, 201)
        if verb in {"replace", "patch"}:
            return self._answer(self._update(request))
        if verb == "delete":
            return self._answer(self._writer.delete(kind, self._get(request).key, options))
        return self._delete_collection(request)

    def _handle_subresource(self, request: Request) -> Response:
        kind, verb, subresource = request.kind, request.verb, request.subresource
        if subresource not in kind.subresources:
            raise no_such_resource()
        if subresource == "scale":
            return self._scale(request)
        if subresource == "status" and verb in {"get", "replace", "patch"}:
            return self._answer(self._get(request) if verb == "get" else self._update(request))
        if subresource in {"binding", "eviction"} and verb == "create":
            pod = self._get(request)
            body = request.body if isinstance(request.body, dict) else {}
            now = self._clock.now()
            if subresource == "binding":
                pods.bind(self._writer, pod, body, request.options, now)
            else:
                pods.evict(self.store, self._writer, pod, _eviction_options(request.options, body), now)
            return self._answer(
                Revision(
                    0,
                    pod.key,
                    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201},
                ),
                201,
            )
        raise MethodNotAllowed(f"the server does not allow this method on {kind.resource}/{subresource}")

    def _get(self, request: Request) -> Revision:
        kind = request.kind
        key = (request.namespace if kind.namespaced else "", request.name)
        revision = self.store.get(kind, key)
        if revision is None:
            raise not_found(kind, request.name)
        return revision

    def _update(self, request: Request) -> Revision:
        old = self._get(request)
        new = _changed(request, old.json)
        return self._writer.update(
            request.kind, old, new, subresource=request.subresource, dry_run=request.options.dry_run
        )

    def _scale(self, request: Request) -> Response:
        kind, options = request.kind, request.options
        old = self._get(request)
        current = scale_of(kind, old)
        if request.verb == "get":
            return self._answer(current)
        if request.verb not in {"replace", "patch"}:
            raise MethodNotAllowed(f"the server does not allow this method on {kind.resource}/scale")
        new = _changed(request, current.json)
        replicas = replicas_in(new, request.name)
        json = {**old.json, "spec": {**old.json["spec"], "replicas": replicas}}
        written = self._writer.update(kind, old, json, dry_run=options.dry_run)
        return self._answer(scale_of(kind, written))

    def _delete_collection(self, request: Request) -> Response:
        kind, options = request.kind, request.options
        selection = Selection(kind, request.namespace, options.labels, options.fields)
        found = self.store.select(kind, selection)
        for revision in found:
            if self.store.get(kind, revision.key) is not None:
                self._writer.delete(kind, revision.key, options)
        return Response(200, self.store.version, listing=found)

    def _answer(self, revision: Revision, code: int = 200) -> Response:
        return Response(code, self.store.version, object=revision)

    def _found(self, kind: Kind[Any], body: Json) -> None:
        if self.store.get(kind, ("", body["metadata"]["name"])) is None:
            self._writer.create(kind, body)


def _changed(request: Request, old: Json) -> Json:
    """Gives the whole object that a PUT or a patch asks for, its preconditions checked."""
    kind, body = request.kind, request.body
    is_scale = request.subresource == "scale"
    if request.verb == "replace":
        if not is_scale:
            metadata.check_type(kind, body)
        metadata.check_preconditions(kind, metadata.sent_in(kind, body), old["metadata"], whole=True)
        return cast("Json", copy_json(body))
    if request.options.patch_type == "json":
        try:
            new = json_patch(old, copy_json(body))
        except PatchError as error:
            raise BadRequest(f"the JSON patch of {kind.resource} {request.name}: {error}") from error
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise BadRequest(
                f"the JSON patch of {kind.resource} {request.name} leaves no object with metadata"
            )
        metadata.check_preconditions(kind, new["metadata"], old["metadata"], whole=False)
        return cast("Json", new)
    metadata.check_preconditions(kind, metadata.sent_in(kind, body), old["metadata"], whole=False)
    if request.options.patch_type == "strategic":
        try:
            new = strategic_merge(old, copy_json(body), PLAIN if is_scale else shape_of(kind))
        except StrategicPatchError as error:
            raise BadRequest(str(error)) from error
    else:
        new = merge_patch(old, copy_json(body))
    if not is_scale:
        metadata.check_type(kind, new)
    return cast("Json", new)


def _version_in(text: str) -> int | None:
    """Gives where a watch begins; None for the start with what is there."""
    if text in {"", "0"}:
        return None
    if not text.isdecimal():
        raise BadRequest(
            f'invalid resource version "{text}": it is the resourceVersion of a list, an object or an event'
        )
    return int(text)


def _eviction_options(options: Options, body: Json) -> Options:
    """Gives the options of an eviction, which an Eviction body may carry as ``deleteOptions``."""
    sent = body.get("deleteOptions") or {}
    if not sent:
        return options
    required = sent.get("preconditions") or {}
    return Options(
        uid=options.uid or required.get("uid") or "",
        resource_version=options.resource_version or required.get("resourceVersion") or "",
        grace_period_s=options.grace_period_s
        if options.grace_period_s is not None
        else sent.get("gracePeriodSeconds"),
        dry_run=options.dry_run or bool(sent.get("dryRun")),
    )
