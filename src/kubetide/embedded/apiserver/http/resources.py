"""Requests for resources: from HTTP to the REST semantics and back.

Source: API concepts v1.36; apiserver v1.36, endpoints/handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from aiohttp import web
from msgspec import structs

from kubetide.embedded.apiserver.admission import UserInfo
from kubetide.embedded.apiserver.http import reading
from kubetide.embedded.apiserver.http.access import User, Wish
from kubetide.embedded.apiserver.http.encoding import (
    EventEncoder,
    Page,
    View,
    encode,
    error_line,
    list_bytes,
    object_bytes,
)
from kubetide.embedded.apiserver.http.negotiation import OBJECT_SHAPES, accepted_form
from kubetide.embedded.apiserver.http.routes import Target
from kubetide.embedded.apiserver.http.series import ADMITTED
from kubetide.embedded.apiserver.http.streams import send_parts, send_watch
from kubetide.embedded.apiserver.http.strict import misfit_in
from kubetide.embedded.apiserver.http.usage import Metrics, read_usage
from kubetide.embedded.apiserver.http.warnings import Warnings
from kubetide.embedded.apiserver.store.changes import changed
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.errors import no_such_resource, too_large_version
from kubetide.embedded.apiserver.store.front import Front
from kubetide.embedded.apiserver.store.request import Options, Request, Response, Verb
from kubetide.embedded.apiserver.store.rest import Rest, version_in
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.scale import SCALE
from kubetide.embedded.apiserver.store.watcher import Watcher
from kubetide.objects.api_types import BINDING, EVICTION
from kubetide.objects.base import Json
from kubetide.objects.kinds import NAMESPACES, PODS
from kubetide.ports.clock import Clock
from kubetide.ports.errors import BadRequest, Expired, MethodNotAllowed, Unclassified

_NOT_ALLOWED = "the server does not allow this method on the requested resource"

# The method on an object, on a collection.
_OBJECT_VERBS: dict[str, Verb] = {
    "GET": "get",
    "HEAD": "get",
    "PUT": "replace",
    "PATCH": "patch",
    "DELETE": "delete",
}
_COLLECTION_VERBS: dict[str, Verb] = {
    "GET": "list",
    "HEAD": "list",
    "POST": "create",
    "DELETE": "deletecollection",
}

_OPTIONS: dict[Verb, str] = {
    "create": "CreateOptions",
    "replace": "UpdateOptions",
    "patch": "PatchOptions",
}

# What kubectl asks a container for by logs, exec, attach, cp and port-forward.
_OF_CONTAINERS = frozenset({"log", "exec", "attach", "portforward", "proxy"})

# Of these a delete answers with the object also when it is gone at once.
_DELETED_SHOWN = frozenset({"pods", "namespaces"})


class Resources:
    """Serves the stored kinds and, where there is a source, metrics.k8s.io.

    Args:
        rest: The semantics.
        front: The way in to them for what writes.
        clock: The cluster's time, for ages in tables.
        metrics: What pods and nodes use.
    """

    def __init__(self, rest: Rest, front: Front, clock: Clock, metrics: Metrics | None) -> None:
        self._rest = rest
        self._front = front
        self._clock = clock
        self._metrics = metrics
        self._encoder = EventEncoder()
        self._watchers: dict[Watcher, None] = {}

    def close_watches(self) -> None:
        """End every watch that is being sent."""
        for watcher in tuple(self._watchers):
            watcher.close()

    async def answer(self, request: web.Request, target: Target, user: User) -> web.StreamResponse:
        """Answer a request for a resource. Raises the ApiError that refuses it."""
        verb = _verb_of(request, target)
        user.require(_wish(verb, target, request.query.get("fieldSelector", "")))
        request[ADMITTED] = True
        if target.kind is PODS and target.subresource in _OF_CONTAINERS:
            self._rest.handle(_request("get", replace(target, subresource="")))  # NotFound comes first
            raise BadRequest(
                f"pod {target.namespace}/{target.name} runs no container: the embedded cluster plays the lives of pods, "
                f"without their programs, so there is nothing for {target.subresource}"
            )
        view = View(
            SCALE if target.subresource == "scale" else target.kind,
            accepted_form(request.headers.get("Accept", ""), OBJECT_SHAPES),
            request.query.get("includeObject", "Metadata"),
            self._clock.now(),
        )
        if target.kind.group == "metrics.k8s.io":
            return await self._usage(request, target, verb, view)
        if verb == "watch":
            return await self._watch(request, target, view)
        if verb == "list":
            return await self._list(request, target, view)
        if verb == "delete":
            return await self._delete(request, target, view, user)
        if verb == "deletecollection":
            options = reading.delete_options(request.query, await _body(request, "DeleteOptions"))
            response = await self._reviewed(request, _request(verb, target, options), user)
            return await self._send_list(request, view, response.listing or (), Page(response.version))
        if verb == "get":
            response = self._rest.handle(_request(verb, target))
            assert response.object is not None
            return _sent(view, response.object, response.code)
        return await self._write(request, target, verb, view, user)

    async def _reviewed(self, request: web.Request, asked: Request, user: User) -> Response:
        """Answer a write that webhooks may want to see; what they warn of goes with the answer."""
        return await self._front.handle(asked, UserInfo(user.name, user.groups), Warnings.of(request).add)

    async def _write(
        self, request: web.Request, target: Target, verb: Verb, view: View, user: User
    ) -> web.StreamResponse:
        if target.subresource and target.subresource not in target.kind.subresources:
            raise no_such_resource()  # whatever the body is
        query, media_type = request.query, _media_type(request)
        patch_type = reading.patch_type_of(media_type) if verb == "patch" else None
        raw = await request.read()
        agent = request.headers.get("User-Agent", "")
        options = reading.write_options(query, _OPTIONS[verb], agent, patch_type)
        if target.subresource in {"binding", "eviction"}:
            sent = reading.decoded(raw, media_type, target.subresource)
            target, options, body = _on_pod(target, options, sent)
        else:
            sent_as = SCALE if target.subresource == "scale" else target.kind
            strict = query.get("fieldValidation") == "Strict"
            result_of = None
            if sent_as is target.kind and (
                (isinstance(sent_as, CustomKind) and patch_type not in {None, "apply"})
                or (patch_type == "json" and strict)
            ):
                result_of = self._result_of(target, options)
            body = reading.checked_body(
                sent_as, raw, media_type, query, patch_type=patch_type, result_of=result_of
            )
        for warning in body.warnings:
            Warnings.of(request).add(warning)
        response = await self._reviewed(request, _request(verb, target, options, body.value), user)
        assert response.object is not None
        return _sent(view, response.object, response.code)

    def _result_of(self, target: Target, options: Options) -> Callable[[Any], Json]:
        """Return a function that returns the object that results from a patch."""

        def result(patch: Any) -> Json:
            current = self._rest.handle(_request("get", target)).object
            assert current is not None
            return changed(_request("patch", target, options, patch), current.json)

        return result

    async def _list(self, request: web.Request, target: Target, view: View) -> web.StreamResponse:
        options = reading.list_options(request.query)
        _check_list_version(request.query, self._rest.store.version)
        response = self._rest.handle(_request("list", target, options))
        page = Page(response.version, response.continue_token, response.remaining)
        return await self._send_list(request, view, response.listing or (), page)

    async def _send_list(
        self, request: web.Request, view: View, items: Iterable[Revision], page: Page
    ) -> web.StreamResponse:
        parts = list_bytes(view, list(items), page)
        return await send_parts(request, parts, self._clock, media_type=view.form.media_type)

    async def _watch(self, request: web.Request, target: Target, view: View) -> web.StreamResponse:
        query = request.query
        options = reading.list_options(query, name=target.name, watch=True)
        bookmarks = reading.flag(query, "allowWatchBookmarks")
        initial = reading.flag(query, "sendInitialEvents")
        if initial:
            # The objects come as they are now, which is not older than any version that was given.
            options = structs.replace(options, resource_version="")
        try:
            response = self._rest.handle(_request("watch", replace_name(target), options))
        except Expired as error:
            return web.Response(body=error_line(error.status()), content_type="application/json")
        watcher = response.watcher
        assert watcher is not None
        self._watchers[watcher] = None
        try:
            return await send_watch(
                request,
                watcher,
                view,
                self._encoder,
                self._clock,
                store=self._rest.store,
                bookmarks=bookmarks,
                initial_end=response.version if initial else None,
                timeout_s=reading.whole_number(query, "timeoutSeconds"),
            )
        finally:
            del self._watchers[watcher]

    async def _delete(
        self, request: web.Request, target: Target, view: View, user: User
    ) -> web.StreamResponse:
        options = reading.delete_options(request.query, await _body(request, "DeleteOptions"))
        response = await self._reviewed(request, _request("delete", target, options), user)
        last, kind = response.object, target.kind
        assert last is not None
        gone = self._rest.store.get(kind, last.key) is None
        if not gone or kind.resource in _DELETED_SHOWN:
            return _sent(view, last, 200)
        details: Json = {"name": target.name, "kind": kind.plural, "uid": last.uid}
        if kind.group:
            details["group"] = kind.group
        status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details,
        }
        return web.Response(body=encode(status) + b"\n", content_type="application/json")

    async def _usage(self, request: web.Request, target: Target, verb: str, view: View) -> web.StreamResponse:
        assert self._metrics is not None, "without a source the kinds are not among the routes"
        version = self._rest.store.version
        found = read_usage(
            self._metrics,
            target,
            verb,
            labels=request.query.get("labelSelector", ""),
            fields=request.query.get("fieldSelector", ""),
            version=version,
        )
        if verb == "get":
            return _sent(view, found[0], 200)
        return await self._send_list(request, view, found, Page(version))


def replace_name(target: Target) -> Target:
    """Return the collection that an object is in."""
    return replace(target, name="") if target.name else target


def _verb_of(request: web.Request, target: Target) -> Verb:
    watched = reading.flag(request.query, "watch")
    if request.method == "GET" and watched and not target.subresource:
        return "watch"
    if request.method == "POST" and target.subresource not in {"", "resize"}:
        return "create"
    if target.subresource and not target.name:
        raise MethodNotAllowed(_NOT_ALLOWED)
    verbs = _OBJECT_VERBS if target.name else _COLLECTION_VERBS
    verb = verbs.get(request.method)
    if verb is None or (target.subresource and verb == "delete"):
        raise MethodNotAllowed(_NOT_ALLOWED)
    if verb == "create" and target.kind.namespaced and not target.namespace:
        raise MethodNotAllowed(_NOT_ALLOWED)
    return verb


def _wish(verb: str, target: Target, fields: str) -> Wish:
    """Return the request as the authorizer checks it.

    Source: apiserver v1.36: a namespace is in itself, and who selects one object by its name names it.
    """
    kind, name = target.kind, target.name
    namespace = name if kind is NAMESPACES else target.namespace
    if verb in {"list", "watch"} and fields.startswith("metadata.name="):
        name = fields.removeprefix("metadata.name=").partition(",")[0]
    resource = f"{kind.plural}/{target.subresource}" if target.subresource else kind.plural
    if target.subresource and not target.name:
        resource = f"{target.subresource}s"
    return Wish("update" if verb == "replace" else verb, kind.group, resource, namespace, name)


def _request(verb: Verb, target: Target, options: Options | None = None, body: Any = None) -> Request:
    return Request(
        verb, target.kind, target.namespace, target.name, target.subresource, options or Options(), body
    )


def _media_type(request: web.Request) -> str:
    return request.headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def _body(request: web.Request, what: str) -> Any:
    return reading.decoded(await request.read(), _media_type(request), what)


def _sent(view: View, revision: Revision, code: int) -> web.Response:
    is_status = revision.json.get("kind") == "Status"
    data = encode(revision.json) if is_status else object_bytes(view, revision)
    return web.Response(status=code, body=data + b"\n", content_type=view.form.media_type)


def _on_pod(target: Target, options: Options, value: Any) -> tuple[Target, Options, reading.Body]:
    """Return a Binding or an Eviction as the semantics take it; both must be of the pod on the path, if that names one."""
    body: Json = value if isinstance(value, dict) else {}
    kind = "Binding" if target.subresource == "binding" else "Eviction"
    misfit = misfit_in(body, BINDING if kind == "Binding" else EVICTION)
    if misfit:
        raise BadRequest(f'{kind} in version "v1" cannot be handled as a {kind}: {misfit}')
    metadata = body.get("metadata") or {}
    name = metadata.get("name") or target.name
    if not name:
        raise BadRequest("Name parameter required.")
    if target.name and name != target.name:
        raise BadRequest(f"name in URL does not match name in {target.subresource.title()} object")
    options = structs.replace(options, uid=metadata.get("uid") or "")
    return replace(target, name=name), options, reading.Body(body)


def _check_list_version(query: reading.Query, version: int) -> None:
    """Raise for a version that a list cannot be answered at: only the newest state is there."""
    text = query.get("resourceVersion", "")
    if not text or text == "0" or query.get("continue"):
        return
    try:
        asked = version_in(text)
    except Unclassified as error:
        raise BadRequest(f"invalid resource version: {error.message}") from error
    if asked > version:
        raise too_large_version(asked, version)
    if query.get("resourceVersionMatch") == "Exact" and asked != version:
        raise Expired(f"The resourceVersion for the provided list is too old: {text} ({version})")
