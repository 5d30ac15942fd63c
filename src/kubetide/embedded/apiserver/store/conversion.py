"""Requests in another version than the one that is stored.

Bodies are converted on the way in and answers on the way out; a patch is applied to the object as
its version shows it. Source: API concepts, versions of one resource.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from kubetide.embedded.apiserver.store import metadata
from kubetide.embedded.apiserver.store.admission import readable
from kubetide.embedded.apiserver.store.changes import changed
from kubetide.embedded.apiserver.store.copying import copy_json
from kubetide.embedded.apiserver.store.request import Request, Response
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.objects.base import Json
from kubetide.objects.hpa_v1 import v1_of, v2_of
from kubetide.objects.kinds import HPAS_V1, Kind

Handle = Callable[[Request], Response]


class Version(msgspec.Struct, frozen=True):
    """A version that is served beside the stored one, and the way there and back."""

    kind: Kind[Any]
    to_stored: Callable[[Json], Json]
    from_stored: Callable[[Json], Json]


HPA_V1 = Version(HPAS_V1, v2_of, v1_of)


def handle_version(handle: Handle, request: Request, version: Version, stored: Kind[Any]) -> Response:
    """Answer a request in a version by one in the stored version. Raises as ``handle`` does."""
    asked = replace(request, kind=stored)
    if request.subresource not in {"", "status"}:
        return handle(asked)
    if request.verb == "patch" and request.options.patch_type != "apply":
        current = handle(Request("get", stored, request.namespace, request.name, request.subresource)).object
        assert current is not None
        new = changed(request, version.from_stored(current.json))
        # Nothing can come in between, so the version that was read need not be required.
        asked = replace(asked, verb="replace", body=new, options=replace(request.options, patch_type="merge"))
    if asked.verb in {"create", "replace", "patch"}:
        asked = replace(asked, body=_stored_body(asked.body, version))
    return _converted(handle(asked), version)


def _stored_body(body: Any, version: Version) -> Any:
    """Return a body in the stored version; one that is none of this version is left for the checks to refuse."""
    kind = version.kind
    if not isinstance(body, dict) or not isinstance(body.get("metadata") or {}, dict):
        return body
    metadata.check_type(kind, body)
    return version.to_stored(readable(kind, copy_json(body)))


def _converted(response: Response, version: Version) -> Response:
    if response.object is not None and response.object.json.get("kind") == version.kind.kind:
        return replace(response, object=_shown(response.object, version))
    if response.listing is not None:
        return replace(response, listing=[_shown(revision, version) for revision in response.listing])
    if response.watcher is not None:
        response.watcher.show_as(lambda revision: _shown(revision, version))
    return response


def _shown(revision: Revision, version: Version) -> Revision:
    return Revision(revision.version, revision.key, version.from_stored(revision.json))
