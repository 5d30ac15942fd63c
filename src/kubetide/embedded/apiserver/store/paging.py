"""Lists in parts that fit together: all parts show the version of the first.

The server holds nothing between the parts: the token says version and place, and the store's history says
what was there then. Source: apiserver v1.36, storage (``continue.go``, ``errors.go``).
"""

from __future__ import annotations

import base64
import json
import string
from bisect import bisect_right
from typing import NamedTuple

from kubetide.embedded.apiserver.store.request import Request, Response
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.meta import Key
from kubetide.ports.errors import BadRequest, Expired

_FORM = "meta.k8s.io/v1"
_ALPHABET = frozenset(string.ascii_letters + string.digits + "-_")
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list "
    "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
    "modified, or deleted between the time the first chunk was returned and now may show up in the list."
)


class _Place(NamedTuple):
    """Where a list goes on: after ``key``, at ``version``; None for whatever the version is now."""

    version: int | None
    key: Key


def listed(store: Store, request: Request) -> Response:
    """Answer a list, whole or in parts.

    Raises: BadRequest for a token that cannot be read, Expired with another token for one whose
    version the history no longer has.
    """
    kind, options = request.kind, request.options
    selection = Selection(kind, request.namespace, options.labels, options.fields)
    version = store.version
    if not options.continue_token:
        found, start = store.select(kind, selection), 0
    else:
        if options.resource_version not in {"", "0"}:
            raise BadRequest("specifying resource version is not allowed when using continue")
        place = _read(options.continue_token)
        if place.version is not None:
            version = place.version
        try:
            found = store.select_at(kind, selection, version)
        except Expired as error:
            raise Expired(_TOO_OLD, continue_token=_written(_Place(None, place.key))) from error
        start = bisect_right(found, place.key, key=_key_of)
    if not options.limit:
        return Response(200, version, listing=found[start:] if start else found)
    end = start + options.limit
    part = found[start:end]
    if end >= len(found):
        return Response(200, version, listing=part)
    return Response(
        200,
        version,
        listing=part,
        continue_token=_written(_Place(version, part[-1].key)),
        remaining=len(found) - end if selection.everything else None,
    )


def _key_of(revision: Revision) -> Key:
    return revision.key


def _written(place: _Place) -> str:
    version = -1 if place.version is None else place.version
    text = json.dumps({"v": _FORM, "rv": version, "start": "/".join(place.key) + "\0"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _read(token: str) -> _Place:
    """Return what a token says. Raises BadRequest, in the words of Go's decoders."""
    bad = "invalid continue token: continue key is not valid: "
    at = next((index for index, char in enumerate(token) if char not in _ALPHABET), None)
    if at is not None or len(token) % 4 == 1:
        raise BadRequest(f"{bad}illegal base64 data at input byte {len(token) if at is None else at}")
    raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    try:
        said = json.loads(raw)
        form, version, start = said.get("v", ""), said.get("rv", 0), said.get("start", "")
        namespace, name = start.removesuffix("\0").split("/") if "/" in start else ("", "")
    except (ValueError, TypeError, AttributeError) as error:
        first = raw[:1].decode("latin-1")
        shown = first if first.isprintable() and first.isascii() else f"\\u{ord(first or chr(0)):04x}"
        raise BadRequest(f"{bad}invalid character '{shown}' looking for beginning of value") from error
    if form != _FORM:
        raise BadRequest(f"{bad}server does not recognize this encoded version {form}")
    if not isinstance(version, int) or isinstance(version, bool) or version == 0:
        raise BadRequest(f"{bad}incorrect encoded start resourceVersion (version {_FORM})")
    if not name:
        raise BadRequest(f"{bad}empty encoded start key (version {_FORM})")
    return _Place(None if version < 0 else version, (namespace, name))
