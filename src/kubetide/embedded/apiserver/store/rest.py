"""REST semantics over the store, apart from any web server.

``Rest.handle`` is the only way in, for the client in the same process as for an HTTP face; it is
synchronous, so every request is atomic.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from kubetide.embedded.apiserver.store import metadata, pods
from kubetide.embedded.apiserver.store.admission import SYSTEM_PRIORITY_CLASSES
from kubetide.embedded.apiserver.store.apply import Manage, Manager, applied, is_tracked, updated
from kubetide.embedded.apiserver.store.changes import applied_config, changed
from kubetide.embedded.apiserver.store.conversion import HPA_V1, Version, handle_version
from kubetide.embedded.apiserver.store.custom_kinds.crds import CustomKinds
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind, shape_in
from kubetide.embedded.apiserver.store.custom_kinds.unknown import unknown_paths
from kubetide.embedded.apiserver.store.errors import conflict, no_such_resource, not_found
from kubetide.embedded.apiserver.store.paging import listed
from kubetide.embedded.apiserver.store.request import Options, Request, Response
from kubetide.embedded.apiserver.store.review import BINDING, EVICTION, Review, unsettled
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.scale import SCALE, replicas_in, scale_of, with_replicas
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.writes import Writer
from kubetide.objects.base import Json
from kubetide.objects.kinds import HPAS_V1, NAMESPACES, PRIORITY_CLASSES, Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import MethodNotAllowed, Unclassified
from kubetide.units.time import format_rfc3339

_READS = frozenset({"get", "list", "watch"})
_FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class Rest:
    """The API server's semantics: what each verb does to each kind."""

    def __init__(self, store: Store, clock: Clock, seed: int) -> None:
        """Create what every cluster has: the system namespaces and priority classes."""
        self.store = store
        self._clock = clock
        self._writer = Writer(store, clock, seed)
        self._custom = CustomKinds(store, self._writer)
        self._custom.settle(self._now())
        self._writer.take_up()
        for name in _FIRST_NAMESPACES:
            self._found(NAMESPACES, {"metadata": {"name": name}})
        for name, value in SYSTEM_PRIORITY_CLASSES.items():
            self._found(PRIORITY_CLASSES, {"metadata": {"name": name}, "value": value})

    def handle(self, request: Request) -> Response:
        """Answer a request. Raises the ApiError that refuses it."""
        registered = self.store.registered(request.kind)
        if registered.version != request.kind.version:
            version = self._version_of(request.kind)
            return handle_version(self.handle, request, version, registered)
        if registered is not request.kind:
            request = replace(request, kind=registered)
        if isinstance(registered, CustomKind):
            if not registered.served:
                raise no_such_resource()
            if request.verb == "create":
                self._custom.check_create(registered)
        response = self._handle(request)
        if request.verb not in _READS and self._custom.concerns(registered):
            self._custom.settle(self._now())
        return response

    def _handle(self, request: Request) -> Response:
        if request.subresource:
            return self._handle_subresource(request)
        kind, options = request.kind, request.options
        verb = request.verb
        if verb == "get":
            return self._answer(self._get(request))
        if verb == "list":
            return listed(self.store, request)
        if verb == "watch":
            selection = Selection(kind, request.namespace, options.labels, options.fields)
            since = options.resource_version
            start = None if since in {"", "0"} else version_in(since)
            watcher = self.store.watch(kind, selection, start)
            return Response(200, self.store.version, watcher=watcher)
        if verb == "create":
            return self._answer(self._create(request, request.body), 201)
        if verb == "patch" and options.patch_type == "apply":
            return self._apply(request)
        if verb in {"replace", "patch"}:
            return self._answer(self._update(request))
        if verb == "delete":
            return self._answer(self._writer.delete(kind, self._get(request).key, options, request.review))
        return self._delete_collection(request)

    @property
    def kinds(self) -> tuple[Kind[Any], ...]:
        """All that is served, the kinds that are stored and their other versions."""
        stored = (kind for kind in self.store.kinds if not isinstance(kind, CustomKind) or kind.served)
        return (*stored, HPAS_V1, *(version.kind for version in self._custom.versions))

    def versions_of(self, kind: Kind[Any]) -> tuple[Version, ...]:
        """Return the versions that a kind is served in beside the stored one."""
        return tuple(
            version for version in (HPA_V1, *self._custom.versions) if version.kind.resource == kind.resource
        )

    def _version_of(self, kind: Kind[Any]) -> Version:
        for version in self.versions_of(kind):
            if version.kind.version == kind.version:
                return version
        raise no_such_resource()

    def _now(self) -> str:
        return format_rfc3339(self._clock.now())

    def _handle_subresource(self, request: Request) -> Response:
        kind, verb, subresource = request.kind, request.verb, request.subresource
        if subresource not in kind.subresources:
            raise no_such_resource()
        if (
            verb == "patch"
            and request.options.patch_type == "apply"
            and subresource in {"scale", "status", "resize"}
        ):
            return self._apply(request)
        if subresource == "scale":
            return self._scale(request)
        if subresource in {"status", "resize"} and verb in {"get", "replace", "patch"}:
            return self._answer(self._get(request) if verb == "get" else self._update(request))
        if subresource in {"binding", "eviction"} and verb == "create":
            pod = self._get(request)
            body = request.body if isinstance(request.body, dict) else {}
            now = self._clock.now()
            if request.review is not None:
                body = _reviewed_body(request, pod, body, request.review)
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

    def _create(self, request: Request, body: Json, manage: Manage | None = None) -> Revision:
        options = request.options
        if manage is None and options.field_manager:
            manage = self._tracker(request, None)
        return self._writer.create(
            request.kind,
            body,
            request.namespace,
            manage=manage,
            dry_run=options.dry_run,
            given=request.given,
            review=request.review,
        )

    def _update(self, request: Request) -> Revision:
        old = self._get(request)
        return self._write(
            request, old, changed(request, old.json), request.subresource, review=request.review
        )

    def _write(
        self,
        request: Request,
        old: Revision,
        new: Json,
        subresource: str = "",
        manage: Manage | None = None,
        review: Review | None = None,
    ) -> Revision:
        if manage is None and (request.options.field_manager or is_tracked(old.json)):
            manage = self._tracker(request, old.json)
        return self._writer.update(
            request.kind,
            old,
            new,
            subresource=subresource,
            manage=manage,
            dry_run=request.options.dry_run,
            review=review,
        )

    def _tracker(self, request: Request, before: Json | None) -> Manage:
        """Return what notes whose the fields of an ordinary write are."""
        kind = request.kind
        name = request.options.field_manager or "unknown"  # upstream's name for who gives none
        manager = Manager("Update", name, kind.api_version, request.subresource)
        return updated(
            before,
            manager,
            shape_in(kind),
            self._now(),
            has_status="status" in kind.subresources,
        )

    def _apply(self, request: Request) -> Response:
        """Server-side apply, of an object, its status or its scale."""
        kind, options, subresource = request.kind, request.options, request.subresource
        config = applied_config(request)
        if isinstance(kind, CustomKind) and subresource != "scale":
            _check_declared(kind, config)
        key = (request.namespace if kind.namespaced else "", request.name)
        old = self.store.get(kind, key)
        if old is None and subresource:
            raise not_found(kind, request.name)
        sent = metadata.sent_in(kind, config)
        if old is not None:
            metadata.check_preconditions(kind, sent, old.metadata, whole=False)
        elif sent.get("uid"):
            raise conflict(
                kind,
                request.name,
                f"uid mismatch: the provided object specified uid {sent['uid']}, and no existing object was found",
            )
        result = applied(
            None if old is None else old.json,
            config,
            Manager("Apply", options.field_manager, kind.api_version, subresource),
            shape_in(kind),
            self._now(),
            has_status="status" in kind.subresources,
            force=options.force,
        )
        if old is None:
            return self._answer(self._create(request, result.json, result.manage), 201)
        if subresource == "scale":
            requested = scale_of(kind, Revision(old.version, old.key, result.json)).json
            json = self._reviewed_scale(request, old, requested, result.json)
            return self._answer(scale_of(kind, self._write(request, old, json, "", result.manage)))
        return self._answer(
            self._write(request, old, result.json, subresource, result.manage, request.review)
        )

    def _scale(self, request: Request) -> Response:
        kind = request.kind
        old = self._get(request)
        current = scale_of(kind, old)
        if request.verb == "get":
            return self._answer(current)
        if request.verb not in {"replace", "patch"}:
            raise MethodNotAllowed(f"the server does not allow this method on {kind.resource}/scale")
        json = self._reviewed_scale(request, old, changed(request, current.json), old.json)
        return self._answer(scale_of(kind, self._write(request, old, json)))

    def _reviewed_scale(self, request: Request, old: Revision, scale: Json, json: Json) -> Json:
        """Return an object with as many replicas as a Scale asks for, once webhooks have seen that."""
        kind, review = request.kind, request.review
        if review is not None:
            current = scale_of(kind, old)
            sent = {**scale, "apiVersion": SCALE.api_version, "kind": SCALE.kind}
            mutated = review.mutated(SCALE, current, sent, unsettled)
            assert mutated is not None, "an update has an object"
            replicas = replicas_in(mutated, request.name)
            review.validate(SCALE, current, {**current.json, "spec": {"replicas": replicas}})
            scale = mutated
        return with_replicas(kind, json, replicas_in(scale, request.name))

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


def _check_declared(kind: CustomKind, config: Json) -> None:
    """Raise Unclassified, as upstream does, for a field of an applied configuration that the schema lacks."""
    unknown = unknown_paths(config, kind.schema)
    if unknown:
        meta = config["metadata"]
        name = f"{meta.get('namespace') or ''}/{meta['name']}"
        raise Unclassified(
            f"failed to create typed patch object ({name}; {kind.api_version}, Kind={kind.kind}): "
            f".{unknown[0]}: field not declared in schema"
        )


def _reviewed_body(request: Request, pod: Revision, body: Json, review: Review) -> Json:
    """Return the Binding or Eviction of a pod once webhooks have seen it. Raises ReviewNeeded."""
    kind = BINDING if request.subresource == "binding" else EVICTION
    namespace, name = pod.key
    meta = {**metadata.sent_in(kind, body), "name": name, "namespace": namespace}
    sent = {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}
    options = request.options
    if options.uid and kind is BINDING:
        sent["metadata"] = {**meta, "uid": options.uid}
    elif kind is EVICTION and not body.get("deleteOptions") and options.grace_period_s is not None:
        sent["deleteOptions"] = {"gracePeriodSeconds": options.grace_period_s}
    mutated = review.mutated(kind, None, sent, unsettled)
    assert mutated is not None, "a creation has an object"
    review.validate(kind, None, mutated)
    return mutated


def version_in(text: str) -> int:
    """Return the number of a version. Raises Unclassified, as upstream has no reason for what is none."""
    if not (text.isascii() and text.isdecimal()):
        raise Unclassified(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def _eviction_options(options: Options, body: Json) -> Options:
    """Return the options of an eviction, which an Eviction body may carry as ``deleteOptions``."""
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
