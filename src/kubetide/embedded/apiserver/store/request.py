"""Requests and responses of the REST semantics, apart from any web server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from kubetide.embedded.apiserver.store.review import Review
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.watcher import Watcher
from kubetide.objects.kinds import Kind
from kubetide.ports.cluster import PatchType, Propagation

Verb = Literal["get", "list", "watch", "create", "replace", "patch", "delete", "deletecollection"]


class Options(msgspec.Struct, frozen=True):
    """What a request says besides its object.

    Attributes:
        labels: Selectors of list, watch and deletecollection; ``fields`` likewise.
        resource_version: Where a watch begins (empty or ``0``: with what is there), or the version
            that a delete, a scale write or an eviction requires.
        uid: The uid that a delete, a binding or an eviction requires.
        limit: How many objects a list gives at most, 0 for all; ``continue_token`` is what the part
            before gave, and goes on at the version of that.
        patch_type: ``apply`` needs a field manager, and creates what is not there.
        field_manager: Who owns the fields that are written. Empty leaves the fields of an object
            untracked, as long as nobody else has given a name.
        force: An apply takes the fields that others own.
        grace_period_s: Of a delete or an eviction; None leaves it to the object.
    """

    labels: str = ""
    fields: str = ""
    resource_version: str = ""
    limit: int = 0
    continue_token: str = ""
    uid: str = ""
    grace_period_s: int | None = None
    propagation: Propagation = "Background"
    patch_type: PatchType | Literal["apply"] = "merge"
    field_manager: str = ""
    force: bool = False
    dry_run: bool = False


NO_OPTIONS = Options()


class Request(msgspec.Struct, frozen=True):
    """One request. ``body`` is decoded JSON, a list for a JSON patch; it is never changed.

    ``given`` says that the sender gives the body away and will not change it either, so that parts of
    it may be stored; else they are copied. ``review`` is asked before anything is written.
    """

    verb: Verb
    kind: Kind[Any]
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    options: Options = NO_OPTIONS
    body: Any = None
    given: bool = False
    review: Review | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a request that was not refused; a refusal is a raised ApiError with its own Status.

    One of the three is there: the object (a Status where upstream answers with one), a listing, or
    a watch. ``version`` is that of the cluster when the answer was made, for a part of a list when
    its first part was. A list that is not at its end has a token to go on with, and says how many
    objects remain where no selector makes that unknown.
    """

    code: int
    version: int
    object: Revision | None = None
    listing: Sequence[Revision] | None = None
    watcher: Watcher | None = None
    continue_token: str = ""
    remaining: int | None = None
