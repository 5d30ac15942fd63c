"""The API server: one listener over the REST semantics of an embedded cluster."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from typing import Any

from aiohttp import web

import kubetide
from kubetide.embedded.apiserver.http.access import Identities
from kubetide.embedded.apiserver.http.delegated import ACCESS_REVIEW as OTHERS_REVIEW
from kubetide.embedded.apiserver.http.delegated import TOKEN_REVIEW, answer_delegated
from kubetide.embedded.apiserver.http.discovery import Discovery, entries_of
from kubetide.embedded.apiserver.http.documents import Documents
from kubetide.embedded.apiserver.http.encoding import encode
from kubetide.embedded.apiserver.http.extension import Extension
from kubetide.embedded.apiserver.http.measures import CustomMetrics, ExternalMetrics, Measures
from kubetide.embedded.apiserver.http.negotiation import DISCOVERY_SHAPES, accepted_form
from kubetide.embedded.apiserver.http.reading import BODY_LIMIT, decoded
from kubetide.embedded.apiserver.http.refusals import too_large
from kubetide.embedded.apiserver.http.resources import Resources
from kubetide.embedded.apiserver.http.reviews import (
    ACCESS_REVIEW,
    RULES_REVIEW,
    SUBJECT_REVIEW,
    answer_review,
)
from kubetide.embedded.apiserver.http.roles import with_stored_roles
from kubetide.embedded.apiserver.http.routes import Routes
from kubetide.embedded.apiserver.http.series import ADMITTED, METRICS_PATH, ServerSeries, asked_for
from kubetide.embedded.apiserver.http.series import MEDIA_TYPE as SERIES_TYPE
from kubetide.embedded.apiserver.http.usage import USAGE_KINDS, Metrics
from kubetide.embedded.apiserver.http.warnings import send_warnings
from kubetide.embedded.apiserver.store.errors import no_such_resource
from kubetide.embedded.apiserver.store.front import Front
from kubetide.embedded.apiserver.store.rest import Rest
from kubetide.embedded.apiserver.types import openapi
from kubetide.embedded.apiserver.types.measure_types import (
    measure_definitions,
    measure_document,
    measure_index,
)
from kubetide.embedded.apiserver.types.openapi_v2 import ASKED_TYPE, MEDIA_TYPE, document_v2, protobuf_v2
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.clock import Clock
from kubetide.ports.errors import ApiError, InternalError, MethodNotAllowed, Unavailable
from kubetide.serving import Listener, bound_tls_buffers
from kubetide.units.time import ZERO

VERSION: Json = {
    "major": "1",
    "minor": "36",
    "gitVersion": f"v1.36.0+kubetide.{kubetide.__version__}",
    "gitCommit": "",
    "gitTreeState": "",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}
"""The API that is spoken: clients choose their requests by it. All of these fields must be there."""

_HEALTH_PATHS = frozenset({"/livez", "/readyz", "/healthz"})
_VERSION_PATHS = frozenset({"/version", "/version/"})

# A scaled clock makes idle connections old soon; a client that finds its own closed fails a write.
_KEEP_ALIVE_S = 7 * 24 * 3600.0

_LOG = logging.getLogger(__name__)

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ApiServer:
    """Serves a cluster over HTTP or, with ``tls``, HTTPS.

    Args:
        rest: The semantics, those that clients in the same process use.
        front: The way in to them through admission webhooks; None for one that can call none.
        clock: The cluster's time.
        identities: Who may ask.
        metrics: What metrics.k8s.io answers from; None leaves that API out.
        custom: The same of custom.metrics.k8s.io.
        external: The same of external.metrics.k8s.io.
        extension: Answers paths of its own beside the Kubernetes API.
        tls: The server's certificate and, for client certificates, their authority.
    """

    def __init__(
        self,
        rest: Rest,
        clock: Clock,
        *,
        identities: Identities,
        front: Front | None = None,
        metrics: Metrics | None = None,
        custom: CustomMetrics | None = None,
        external: ExternalMetrics | None = None,
        extension: Extension | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._rest = rest
        self._clock = clock
        self._identities = identities
        self._tls = tls
        self._usage_kinds: tuple[Kind[Any], ...] = () if metrics is None else USAGE_KINDS
        self._resources = Resources(rest, front or Front(rest), clock, metrics)
        self._measures = Measures(custom, external, rest)
        self._series = ServerSeries(rest, clock)
        self._extension = extension
        self._routes = Routes(())
        self._documents = Documents()
        self._listener: Listener | None = None
        self._serving = False
        self.url = ""
        """Where it listens, once it has started."""

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen; port 0 takes a free one. Raises OSError when the address cannot be had."""
        app = web.Application(middlewares=[self._refusals], client_max_size=BODY_LIMIT)
        app.on_response_prepare.extend((send_warnings, self._date))
        app.router.add_route("*", "/{path:.*}", self._handle)
        if self._tls is not None:
            bound_tls_buffers()
        self._listener = Listener(app, handler_cancellation=True, keepalive_timeout=_KEEP_ALIVE_S)
        self._serving = True
        self._documents = Documents()  # they name the address
        try:
            await self._listener.listen(host, port, tls=self._tls)
        except BaseException:
            await self.stop()
            raise
        self.url = f"{'https' if self._tls else 'http'}://{self._listener.authority}"

    async def stop(self) -> None:
        """End open watches and closes the listener and every connection."""
        self._serving = False
        self._resources.close_watches()
        if self._listener is None:
            return
        await self._listener.close()
        self._listener = None
        await self._clock.sleep(ZERO)

    async def _date(self, _request: web.Request, answer: web.StreamResponse) -> None:
        """Date an answer by the cluster's clock, as its objects are."""
        answer.headers["Date"] = formatdate(self._clock.now() // 10**9, usegmt=True)

    @web.middleware
    async def _refusals(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a refusal with its Status, and whatever goes wrong here with an InternalError."""
        if not self._serving:
            # A client whose watch has just been ended may ask again before its connection is closed.
            answer = _refusal(Unavailable("the server has stopped"))
            answer.force_close()
            return answer
        try:
            return await self._counted(request, handler)
        except ApiError as error:
            return _refusal(error)
        except web.HTTPRequestEntityTooLarge:
            return _refusal(too_large(BODY_LIMIT))
        except (web.HTTPException, ConnectionError):
            raise
        except Exception:  # noqa: BLE001 the rim of the server: a fault of one request must not end the cluster
            _LOG.exception("%s %s failed", request.method, request.path)
            return _refusal(InternalError("Internal error occurred: see the server's log"))

    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request and counts it; a watch that its client ends has ended well."""
        asked = asked_for(request, self._current_routes().target(request.path))
        if asked is None:
            return await handler(request)
        begun, code = self._clock.now(), 200 if asked.verb == "WATCH" else 500
        try:
            with self._series.under_way(asked):
                answer = await handler(request)
            code = answer.status
        except ApiError as error:
            code = error.code
            raise
        except web.HTTPRequestEntityTooLarge:
            code = 413
            raise
        else:
            return answer
        finally:
            if not asked.component or request.get(ADMITTED):
                self._series.answered(asked, code, (self._clock.now() - begun) / 1e9)

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        path = request.path
        if path in _HEALTH_PATHS:
            return web.Response(text="ok")
        if path in _VERSION_PATHS:
            return _json(VERSION)
        user = self._identities.user_of(request.headers.get("Authorization", ""), _certificate(request))
        groups = request.headers.getall("Impersonate-Group", [])
        user = with_stored_roles(user, self._rest.store)
        acting = self._identities.acting_as(user, request.headers, groups)
        if acting is not user:
            user = with_stored_roles(acting, self._rest.store)
        if path == METRICS_PATH:
            user.require_path(request.method.lower(), path)
            return web.Response(body=self._series.text(), headers={"Content-Type": SERIES_TYPE})
        if path in {ACCESS_REVIEW, RULES_REVIEW, SUBJECT_REVIEW, TOKEN_REVIEW, OTHERS_REVIEW}:
            if request.method != "POST":
                raise MethodNotAllowed("the server does not allow this method on the requested resource")
            body = await _body_of(request, "SelfSubjectAccessReview")
            if path in {TOKEN_REVIEW, OTHERS_REVIEW}:
                store = self._rest.store
                return _json(answer_delegated(path, user, body, self._identities, store), 201)
            return _json(answer_review(path, user, body), 201)
        if self._extension is not None and path.startswith(self._extension.prefix):
            user.require_path(request.method.lower(), path)
            rest, body = path.removeprefix(self._extension.prefix), await _body_of(request, "body")
            return _json(await self._extension.answer(request.method, rest, request.query, body, user.name))
        routes = self._current_routes()
        target = routes.target(path)
        if target is not None:
            return await self._resources.answer(request, target, user)
        measured = self._measures.answer(request.method, path, request.query, user)
        if measured is not None:
            return _json(measured)
        if path.startswith("/openapi/"):
            return self._schemas(request, path)
        return self._discover(request, path)

    def _schemas(self, request: web.Request, path: str) -> web.Response:
        """Answer below ``/openapi``."""
        kinds, measured = (*self._rest.kinds, *self._usage_kinds), self._measures.groups()
        self._documents.renew(kinds, self._measures.entries())
        if path == "/openapi/v2":
            accept = request.headers.get("Accept", "")
            as_json = ASKED_TYPE not in accept and MEDIA_TYPE not in accept

            def second() -> bytes:
                document = document_v2(kinds)
                document["definitions"] |= measure_definitions(measured)
                return encode(document) + b"\n" if as_json else protobuf_v2(document)

            media_type = "application/json" if as_json else MEDIA_TYPE
            body = self._documents.get((path, as_json), second)
            return web.Response(body=body, headers={"Content-Type": media_type})

        def third() -> bytes | None:
            if path == "/openapi/v3":
                return encode({"paths": openapi.index(kinds)["paths"] | measure_index(measured)}) + b"\n"
            root = path.removeprefix("/openapi/v3/")
            found = openapi.document(root, kinds) or measure_document(root, measured)
            return None if found is None else encode(found) + b"\n"

        body = self._documents.get(path, third)
        return _missing() if body is None else web.Response(body=body, content_type="application/json")

    def _discover(self, request: web.Request, path: str) -> web.Response:
        kinds, measured = (*self._rest.kinds, *self._usage_kinds), self._measures.entries()
        self._documents.renew(kinds, measured)

        def discovery() -> Discovery:
            return Discovery(entries_of(self._rest.kinds, self._usage_kinds) + measured, self.url)

        def plain() -> bytes | None:
            document = discovery().document(path)
            return None if document is None else encode(document) + b"\n"

        body = self._documents.get(path, plain)
        if body is None:
            if self._routes.is_below_a_version(path):
                raise no_such_resource()
            return _missing()
        if request.method not in {"GET", "HEAD"}:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        if path.strip("/") in {"api", "apis"}:
            form = accepted_form(request.headers.get("Accept", ""), DISCOVERY_SHAPES)
            if form.shape:
                body = self._documents.get((path, form), lambda: encode(discovery().aggregated(path)))
                return web.Response(body=body, headers={"Content-Type": form.media_type})
        return web.Response(body=body, content_type="application/json")

    def _current_routes(self) -> Routes:
        kinds = (*self._rest.kinds, *self._usage_kinds)
        if kinds != self._routes.kinds:
            self._routes = Routes(kinds)
        return self._routes


def _certificate(request: web.Request) -> Any:
    return request.transport.get_extra_info("peercert") if request.transport else None


async def _body_of(request: web.Request, what: str) -> Any:
    """Return the value of the body, None for an empty one. Raises: those of ``decoded``."""
    media_type = request.headers.get("Content-Type", "").partition(";")[0]
    return decoded(await request.read(), media_type, what)


def _missing() -> web.Response:
    return web.Response(status=404, text="404 page not found\n")


def _json(document: Json, code: int = 200) -> web.Response:
    return web.Response(status=code, body=encode(document) + b"\n", content_type="application/json")


def _refusal(error: ApiError) -> web.Response:
    answer = _json(error.status(), error.code)
    if error.retry_after_s is not None:
        answer.headers["Retry-After"] = str(error.retry_after_s)
    return answer
