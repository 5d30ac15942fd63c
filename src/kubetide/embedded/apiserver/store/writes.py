"""Create, update and delete, and what follows from them: finalizers, owners, namespaces.

Everything that follows from a request (dependents of an owner that is gone, the contents of a
namespace) has been done when the request returns; what takes time in a real cluster, the ending
of a pod, takes time here too, as only whoever runs the pod can finish its deletion.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import msgspec

from kubetide.embedded.apiserver.store import metadata
from kubetide.embedded.apiserver.store.admission import admitted, checked, readable
from kubetide.embedded.apiserver.store.apply import Manage
from kubetide.embedded.apiserver.store.copying import copy_json
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind
from kubetide.embedded.apiserver.store.deletion import (
    FOREGROUND,
    deleted,
    finalizers_after,
    is_complete,
    is_deleting,
)
from kubetide.embedded.apiserver.store.errors import already_exists, conflict, forbidden, not_found
from kubetide.embedded.apiserver.store.garbage import Garbage
from kubetide.embedded.apiserver.store.node_capacity import check_node_capacity
from kubetide.embedded.apiserver.store.request import NO_OPTIONS, Options
from kubetide.embedded.apiserver.store.review import Review, unsettled
from kubetide.embedded.apiserver.store.reviewed import mutated_new, mutated_update
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import EVENTS, NAMESPACES, Kind
from kubetide.objects.meta import Key
from kubetide.ports.clock import Clock
from kubetide.ports.errors import Unclassified
from kubetide.units.time import Instant, after, format_rfc3339, hours

_EVENT_LIFE = hours(1)  # kube-apiserver --event-ttl
_TRIES = 8  # how often upstream draws another name
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})


class Writer:
    """The only one who writes to a store; it keeps every rule that a write must keep."""

    def __init__(self, store: Store, clock: Clock, seed: int) -> None:
        self._store = store
        self._clock = clock
        self._identities = metadata.Identities(seed)
        self._garbage = Garbage(store, self)
        self._event_ends: deque[tuple[Instant, Key, int]] = deque()

    def take_up(self) -> None:
        """Go on where the writer of a store that was brought back had been interrupted.

        What follows from a write, and may not have been done when it ended, is looked at again.
        """
        now = self._clock.now()
        for kind in self._store.kinds:
            for revision in self._store.select(kind, Selection(kind)):
                if kind is EVENTS:
                    self._event_ends.append((after(now, _EVENT_LIFE), revision.key, revision.version))
                if revision.metadata.get("ownerReferences"):
                    self._garbage.review(kind, revision.key)
                if not is_deleting(revision.json):
                    continue
                if kind is NAMESPACES:
                    self._garbage.empty(revision.key[1])
                elif FOREGROUND in (revision.metadata.get("finalizers") or ()):
                    self._garbage.hold(kind, revision.key)
        self._garbage.settle()

    def create(
        self,
        kind: Kind[Any],
        body: Json,
        namespace: str = "",
        *,
        manage: Manage | None = None,
        dry_run: bool = False,
        given: bool = False,
        review: Review | None = None,
    ) -> Revision:
        """Create an object; ``manage`` notes whose its fields are, ``review`` what webhooks say of it.

        Raises AlreadyExists, Invalid, NotFound (namespace), Forbidden, BadRequest.
        """
        metadata.check_type(kind, body)
        json = readable(kind, {**body} if given else copy_json(body))
        sent = metadata.sent_in(kind, json)
        if sent.get("resourceVersion"):
            raise Unclassified("resourceVersion should not be set on objects to be created")
        namespace = metadata.namespace_of(kind, json, namespace)
        if kind.namespaced:
            self._check_namespace(kind, namespace, sent.get("name") or sent.get("generateName") or "")
        if review is None:
            key, uid, now = self._identity(kind, namespace, sent)
        else:
            json = mutated_new(self._store, kind, json, namespace, manage, review)
            manage = None
            sent = metadata.sent_in(kind, json)
            key, uid, now = review.identity(lambda: self._identity(kind, namespace, sent))
        json["apiVersion"], json["kind"] = kind.api_version, kind.kind
        json["metadata"] = metadata.for_create(
            kind, sent, namespace=namespace, name=key[1], uid=uid, now=format_rfc3339(now)
        )
        json = admitted(self._store, kind, json)
        if manage is not None:
            json = manage(json)
        if review is not None:
            review.validate(kind, None, json)
        if self._store.get(kind, key) is not None:
            raise already_exists(kind, key[1])  # only now: what is wrong with the object is said first
        revision = self.put(kind, key, json, dry_run=dry_run)
        if dry_run:
            return revision
        if json["metadata"].get("ownerReferences"):
            self._garbage.review(kind, key)
        if kind is EVENTS:
            self._expire_events(now, revision)
        self._garbage.settle()
        return revision

    def _identity(self, kind: Kind[Any], namespace: str, sent: Json) -> tuple[Key, str, Instant]:
        """Return key, uid and time of a new object; the uid is empty where the name is taken."""
        name = sent.get("name") or ""
        prefix = "" if name else sent.get("generateName") or ""
        for _ in range(_TRIES if prefix else 1):
            key = namespace, self._identities.next_name(kind, namespace, prefix) if prefix else name
            taken = self._store.get(kind, key) is not None
            if not taken:
                break
        uid = "" if taken else self._identities.next_uid(kind, *key, self._store.version, prefix)
        return key, uid, self._clock.now()

    def update(
        self,
        kind: Kind[Any],
        old: Revision,
        new: Json,
        *,
        subresource: str = "",
        manage: Manage | None = None,
        dry_run: bool = False,
        review: Review | None = None,
    ) -> Revision:
        """Make ``new`` of the object, as far as the subresource lets it; a change of nothing writes nothing.

        ``new`` may share structure with the old JSON and is stored as it is; ``manage`` notes whose the fields
        are, ``review`` what webhooks say of it. Raises Invalid, Forbidden.
        """
        before = old.json
        if review is not None:
            new = mutated_update(kind, old, new, manage, review)
            manage = None
        if subresource == "status":
            changed = {**before, "status": new.get("status")}
            if changed["status"] is None:
                del changed["status"]
            if isinstance(kind, CustomKind):
                changed = checked(kind, changed, before)
            if manage is not None:
                changed = manage(changed)
            if review is not None:
                review.validate(kind, old, changed)
            return old if changed == before else self.put(kind, old.key, changed, dry_run=dry_run)
        new = {**new, "apiVersion": kind.api_version, "kind": kind.kind}
        new["metadata"] = metadata.for_update(
            before["metadata"] if subresource == "resize" else metadata.sent_in(kind, new), before["metadata"]
        )
        if "status" in kind.subresources:
            if "status" in before:
                new["status"] = before["status"]
            else:
                new.pop("status", None)
        if new == before and manage is None and review is None:
            return old
        new = checked(kind, readable(kind, new), before, subresource)
        if subresource == "resize" and new["spec"] != before["spec"]:
            check_node_capacity(self._store, new)
        if manage is not None:
            new = manage(new)
        if new != before:
            new = metadata.with_generation(kind, new, before)
        if review is not None:
            review.validate(kind, old, new)
        if new == before:
            return old
        if is_complete(new):
            return self._finish(kind, old.key, new, dry_run=dry_run)
        revision = self.put(kind, old.key, new, dry_run=dry_run)
        if not dry_run:
            if new["metadata"].get("ownerReferences") != before["metadata"].get("ownerReferences"):
                self._garbage.review(kind, old.key)
            self._garbage.settle()
        return revision

    def delete(
        self, kind: Kind[Any], key: Key, options: Options = NO_OPTIONS, review: Review | None = None
    ) -> Revision:
        """Delete an object, at once or when its time and its finalizers allow; return its last state.

        Raises NotFound, Conflict (preconditions), Forbidden (the namespaces that must stay).
        """
        old = self._store.get(kind, key)
        if review is not None and old is not None:
            _check_delete(kind, old, options)
            review.mutated(kind, old, None, unsettled)
            review.validate(kind, old, None)
        revision = self.mark_deleted(kind, key, options)
        self._garbage.settle()
        return revision

    def mark_deleted(self, kind: Kind[Any], key: Key, options: Options = NO_OPTIONS) -> Revision:
        """Do a delete up to what follows from it, which ``Garbage.settle`` does."""
        old = self._store.get(kind, key)
        if old is None:
            raise not_found(kind, key[1])
        _check_delete(kind, old, options)
        blocking = self._garbage.is_blocked(old.uid)
        finalizers = finalizers_after(old.json, options.propagation, hold=blocking)
        if kind is NAMESPACES:
            return self._delete_namespace(old, finalizers, dry_run=options.dry_run)
        now = self._clock.now()
        new = deleted(kind, old.json, now, grace_s=options.grace_period_s, finalizers=finalizers)
        if options.dry_run:
            return old if new is None else Revision(old.version, key, new)
        if options.propagation == "Orphan":
            self._garbage.orphan(old.uid)
        if new is None:
            return self.remove(kind, key)
        revision = old if new is old.json else self.put(kind, key, new)
        if FOREGROUND in finalizers:
            self._garbage.hold(kind, key)
        return revision

    def put(self, kind: Kind[Any], key: Key, json: Json, *, dry_run: bool = False) -> Revision:
        """Write past every rule but one: the object can be read as its kind. Raises BadRequest."""
        try:
            if dry_run:
                revision = Revision(self._store.version, key, json)
                revision.read_as(kind.model)
                return revision
            return self._store.put(kind, key, json)
        except msgspec.ValidationError:
            return self.put(kind, key, readable(kind, json), dry_run=dry_run)

    def remove(self, kind: Kind[Any], key: Key) -> Revision:
        """Remove an object past every rule, and notes what follows."""
        last = self._store.remove(kind, key)
        self._garbage.removed(kind, last)
        return last

    def _finish(self, kind: Kind[Any], key: Key, last: Json, *, dry_run: bool) -> Revision:
        """Remove an object whose last finalizer an update has taken away."""
        if dry_run:
            return Revision(self._store.version, key, last)
        if kind is NAMESPACES and self._store.in_namespace(key[1]):
            revision = self.put(kind, key, last)
        else:
            revision = self.remove(kind, key)
        self._garbage.settle()
        return revision

    def _check_namespace(self, kind: Kind[Any], namespace: str, name: str) -> None:
        home = self._store.get(NAMESPACES, ("", namespace))
        if home is None:
            raise not_found(NAMESPACES, namespace)
        if is_deleting(home.json):
            message = f"namespace {namespace} is being terminated"
            raise forbidden(
                kind,
                name,
                f"unable to create new content in namespace {namespace} because it is being terminated",
                causes=(
                    {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"},
                ),
            )

    def _delete_namespace(self, old: Revision, finalizers: list[str], *, dry_run: bool) -> Revision:
        """Empty a namespace; it goes when the last of its objects has gone."""
        name = old.key[1]
        if name in _KEPT_NAMESPACES:
            raise forbidden(NAMESPACES, name, "this namespace may not be deleted")
        if is_deleting(old.json) or dry_run:
            return old
        meta = {**old.metadata, "deletionTimestamp": format_rfc3339(self._clock.now())}
        if finalizers:
            meta["finalizers"] = finalizers
        status = {**(old.json.get("status") or {}), "phase": "Terminating"}
        revision = self.put(NAMESPACES, old.key, {**old.json, "metadata": meta, "status": status})
        self._garbage.empty(name)
        return revision

    def _expire_events(self, now: Instant, written: Revision) -> None:
        """Let events go an hour after their last write; looked at whenever a new one comes."""
        self._event_ends.append((after(now, _EVENT_LIFE), written.key, written.version))
        while self._event_ends and self._event_ends[0][0] <= now:
            _, key, version = self._event_ends.popleft()
            revision = self._store.get(EVENTS, key)
            if revision is None:
                continue
            if revision.version == version:
                self.remove(EVENTS, key)
            else:
                # Written again since: its hour began anew, at the latest now.
                self._event_ends.append((after(now, _EVENT_LIFE), key, revision.version))


def _check_delete(kind: Kind[Any], old: Revision, options: Options) -> None:
    """Raise Conflict when the preconditions of a delete do not hold."""
    uid, version = options.uid, options.resource_version
    # Upstream says the kind in place of the resource here.
    resource = f"{kind.kind}.{kind.group}" if kind.group else kind.kind
    if uid and uid != old.uid:
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({old.uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(kind, old.key[1], why, resource=resource, as_kind=True)
    if version and version != str(old.version):
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion "
            f"in record ({old.version}). The object might have been modified"
        )
        raise conflict(kind, old.key[1], why, resource=resource, as_kind=True)
