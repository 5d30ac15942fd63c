"""The objects that a review is shown: as sent, with defaults, before the server's own fields.

Source: apiserver v1.36, endpoints/handlers (create, update, patch): mutating webhooks see an object
before its strategy has prepared it, so a new one has no uid, and no name where that is generated.
"""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.store import metadata
from kubetide.embedded.apiserver.store.admission import filled, readable, with_priority
from kubetide.embedded.apiserver.store.apply import Manage
from kubetide.embedded.apiserver.store.review import Review
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import BadRequest, InternalError


def mutated_new(
    store: Store, kind: Kind[Any], json: Json, namespace: str, manage: Manage | None, review: Review
) -> Json:
    """Return a new object as mutating webhooks want it. Raises ReviewNeeded, BadRequest, Forbidden."""
    json = _typed(kind, json)
    json["metadata"] = metadata.for_review(metadata.sent_in(kind, json), namespace)
    json = filled(kind, with_priority(store, kind, json))
    if manage is not None:
        json = manage(json)
    new = review.mutated(kind, None, json, lambda changed: _settled(kind, changed))
    assert new is not None, "a creation has an object"
    if (new["metadata"].get("namespace") or "") != namespace:
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return new


def mutated_update(kind: Kind[Any], old: Revision, new: Json, manage: Manage | None, review: Review) -> Json:
    """Return a changed object as mutating webhooks want it. Raises ReviewNeeded, BadRequest."""
    new = readable(kind, _typed(kind, new))
    meta = {**metadata.sent_in(kind, new), "name": old.key[1]}
    if old.key[0]:
        meta["namespace"] = old.key[0]
    new = filled(kind, {**new, "metadata": meta})
    if manage is not None:
        new = manage(new)
    result = review.mutated(kind, old, new, lambda changed: _settled(kind, changed))
    assert result is not None, "an update has an object"
    return result


def _typed(kind: Kind[Any], json: Json) -> Json:
    return {**json, "apiVersion": kind.api_version, "kind": kind.kind}


def _settled(kind: Kind[Any], json: Json) -> Json:
    try:
        return filled(kind, readable(kind, _typed(kind, json)))
    except BadRequest as error:
        text = str(error)
        raise InternalError(f"Internal error occurred: {text}", causes=({"message": text},)) from error
