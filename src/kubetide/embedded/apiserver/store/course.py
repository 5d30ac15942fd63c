"""The review of one request: who is to be asked, and what has been answered so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

from kubetide.embedded.apiserver.admission import Attributes, Hook, UserInfo, View
from kubetide.embedded.apiserver.admission.attributes import Operation, Target, TypeName
from kubetide.embedded.apiserver.admission.matching import view_for
from kubetide.embedded.apiserver.store.request import Options, Request
from kubetide.embedded.apiserver.store.review import ReviewNeeded, unsettled
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import NAMESPACES, Kind

T = TypeVar("T")

_OPTIONS = {"CREATE": "CreateOptions", "UPDATE": "UpdateOptions", "DELETE": "DeleteOptions"}


class Course:
    """Implements ``Review`` for one request.

    Args:
        store: Where the labels of the namespace are read.
        request: The request, in the version that was asked in.
        views: The versions of its resource, that one first.
        user: Who asks.
        mutating: The webhooks whose rules cover the request; ``validating`` likewise.
        named: The request names the object; a deletion of a collection does not.
    """

    def __init__(
        self,
        store: Store,
        request: Request,
        views: tuple[View, ...],
        user: UserInfo,
        *,
        mutating: Sequence[Hook],
        validating: Sequence[Hook],
        named: bool = True,
    ) -> None:
        self._store = store
        self._request = request
        self._views = views
        self._user = user
        self._mutating = mutating
        self._validating = validating
        self._named = named
        self._drawn: Any = None
        self._mutation: tuple[int, Json | None] | None = None
        self._validation: tuple[int, Json | None] | None = None

    def identity(self, draw: Callable[[], T]) -> T:
        if self._drawn is None:
            self._drawn = draw()
        return cast("T", self._drawn)

    def mutated(
        self, kind: Kind[Any], old: Revision | None, new: Json | None, settle: Callable[[Json], Json]
    ) -> Json | None:
        version = 0 if old is None else old.version
        if self._mutation is None or self._mutation[0] != version:
            attributes = self._attributes(kind, old, new, settle)
            if any(view_for(hook, attributes) for hook in self._mutating):
                raise ReviewNeeded(attributes, version, mutating=True)
            # Stored too, as the times in it would be others when the request is handled again.
            self._mutation = version, new
        return self._mutation[1]

    def validate(self, kind: Kind[Any], old: Revision | None, new: Json | None) -> None:
        version = 0 if old is None else old.version
        if self._validation == (version, new):
            return
        attributes = self._attributes(kind, old, new, unsettled)
        if any(view_for(hook, attributes) for hook in self._validating):
            raise ReviewNeeded(attributes, version, mutating=False)

    def note(self, needed: ReviewNeeded, result: Json | None) -> None:
        """Store the answer of a webhook call: the object as the webhook changed or allowed it."""
        if needed.mutating:
            self._mutation = needed.version, result
        else:
            self._validation = needed.version, result

    def _attributes(
        self, kind: Kind[Any], old: Revision | None, new: Json | None, settle: Callable[[Json], Json]
    ) -> Attributes:
        request = self._request
        operation: Operation = "DELETE" if new is None else "CREATE" if old is None else "UPDATE"
        apart = kind.resource != request.kind.resource  # a Scale, a Binding, an Eviction
        target = target_of(request, operation, new)
        return Attributes(
            target=target,
            name=_name_in(request, new) if self._named else "",
            kind=request.kind.kind,
            views=self._views,
            type_name=TypeName(kind.group, kind.version, kind.kind) if apart else None,
            object=new,
            old=None if old is None else old.json,
            user=self._user,
            options=_options(operation, request.options),
            dry_run=request.options.dry_run,
            namespace_labels=self._labels_of(target.namespace),
            settle=settle,
        )

    def _labels_of(self, namespace: str) -> Mapping[str, str]:
        found = self._store.get(NAMESPACES, ("", namespace)) if namespace else None
        return {} if found is None else found.metadata.get("labels") or {}


def target_of(request: Request, operation: Operation, body: Any) -> Target:
    """Return what rules look at; a new object itself says where it is to be."""
    kind = request.kind
    if kind.resource == NAMESPACES.resource:
        namespace = _name_in(request, body)
    else:
        namespace = request.namespace or _said(body, "namespace") if kind.namespaced else ""
    return Target(operation, kind.group, kind.plural, request.subresource, namespace)


def _name_in(request: Request, body: Any) -> str:
    return request.name or _said(body, "name")


def _said(body: Any, field: str) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    said = metadata.get(field) if isinstance(metadata, dict) else None
    return said if isinstance(said, str) else ""


def _options(operation: Operation, options: Options) -> Json:
    said: Json = {"kind": _OPTIONS[operation], "apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        said["dryRun"] = ["All"]
    if operation != "DELETE":
        if options.field_manager:
            said["fieldManager"] = options.field_manager
        return said
    if options.grace_period_s is not None:
        said["gracePeriodSeconds"] = options.grace_period_s
    required = {"uid": options.uid, "resourceVersion": options.resource_version}
    if any(required.values()):
        said["preconditions"] = {field: value for field, value in required.items() if value}
    if options.propagation != "Background":
        said["propagationPolicy"] = options.propagation
    return said
