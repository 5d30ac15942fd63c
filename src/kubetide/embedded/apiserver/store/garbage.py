"""What follows from a removal: dependents of gone owners, owners that waited, namespaces to empty.

A queue, not recursion, so that no chain of owners is too long and no circle hangs. Source: the
garbage collector and the namespace controller of kube-controller-manager v1.36, whose outcome
this has at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from kubetide.embedded.apiserver.store.deletion import FOREGROUND, is_complete, is_deleting
from kubetide.embedded.apiserver.store.request import NO_OPTIONS, Options
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.store import Place, Store
from kubetide.objects.base import Json
from kubetide.objects.kinds import NAMESPACES, Kind
from kubetide.objects.meta import Key

_FOREGROUND = Options(propagation="Foreground")


class Writes(Protocol):
    """What the garbage collector asks of the writer."""

    def mark_deleted(self, kind: Kind[Any], key: Key, options: Options = NO_OPTIONS) -> Revision: ...
    def put(self, kind: Kind[Any], key: Key, json: Json, *, dry_run: bool = False) -> Revision: ...
    def remove(self, kind: Kind[Any], key: Key) -> Revision: ...


class Garbage:
    """Follows up what the writer notes; ``settle`` returns when nothing follows any more."""

    def __init__(self, store: Store, writes: Writes) -> None:
        self._store = store
        self._writes = writes
        self._todo: deque[Callable[[], None]] = deque()

    def settle(self) -> None:
        """Do everything that has been noted, and what follows from that."""
        while self._todo:
            self._todo.popleft()()

    def review(self, kind: Kind[Any], key: Key) -> None:
        """Note that an object's owners must be looked at."""
        self._todo.append(partial(self._review, kind, key))

    def removed(self, kind: Kind[Any], last: Revision) -> None:
        """Note that an object has gone: its dependents, its owners and its namespace may follow."""
        for dependent in self._store.dependents(last.uid):
            self.review(*dependent)
        for owner in last.metadata.get("ownerReferences") or ():
            self._release_later(owner.get("uid", ""))
        if kind.namespaced:
            home = self._store.get(NAMESPACES, ("", last.key[0]))
            if home is not None and is_deleting(home.json):
                self._todo.append(partial(self._remove_if_empty, home.key))

    def hold(self, kind: Kind[Any], key: Key) -> None:
        """Note that an object waits for its dependents: they are deleted, then it is let go."""
        revision = self._store.get(kind, key)
        if revision is None:
            return
        for dependent in self._store.dependents(revision.uid):
            self.review(*dependent)
        self._release_later(revision.uid)

    def empty(self, namespace: str) -> None:
        """Note that a namespace is to be emptied and then removed."""
        for kind, key in self._store.in_namespace(namespace):
            self._todo.append(partial(self._delete, kind, key))
        self._todo.append(partial(self._remove_if_empty, ("", namespace)))

    def orphan(self, uid: str) -> None:
        """Take the owner of that uid out of its dependents."""
        for kind, key in self._others_of(uid):
            self._keep_owners(kind, key, lambda owner: owner.get("uid") != uid)

    def is_blocked(self, uid: str) -> bool:
        """Return whether a dependent is there that blocks the foreground deletion of its owner."""
        for kind, key in self._others_of(uid):
            revision = self._store.get(kind, key)
            for owner in (revision.metadata.get("ownerReferences") or ()) if revision else ():
                if owner.get("uid") == uid and owner.get("blockOwnerDeletion"):
                    return True
        return False

    def _others_of(self, uid: str) -> list[Place]:
        """Return the dependents of an owner without itself: who owns itself does not wait for itself."""
        own = self._store.place_of(uid)
        return [place for place in self._store.dependents(uid) if place != own]

    def _review(self, kind: Kind[Any], key: Key) -> None:
        """Delete an object none of whose owners will stay; else forgets the owners that will not."""
        revision = self._store.get(kind, key)
        if revision is None or is_deleting(revision.json):
            return
        owners = revision.metadata.get("ownerReferences") or ()
        states = {owner.get("uid", ""): self._state_of(owner, key[0]) for owner in owners}
        if not owners or set(states.values()) == {"stays"}:
            return
        if "stays" in states.values():
            self._keep_owners(kind, key, lambda owner: states[owner.get("uid", "")] == "stays")
            return
        dependents = self._store.dependents(revision.uid)
        if "waits" not in states.values() or not dependents:
            self._delete(kind, key)
            return
        if any(self._is_held(self._store.get(*dependent)) for dependent in dependents):
            # A circle of owners: this one must not hold up those that hold it up.
            self._unblock(kind, key, revision)
        self._delete(kind, key, _FOREGROUND)

    def _state_of(self, owner: Json, namespace: str) -> str:
        """``stays``, ``waits`` (in foreground deletion) or ``gone``; of a kind not stored here, nobody can say."""
        place = self._store.place_of(owner.get("uid", ""))
        if place is not None and place[1][0] in {"", namespace}:
            revision = self._store.get(*place)
            return "waits" if self._is_held(revision) else "stays"
        known = (owner.get("apiVersion"), owner.get("kind"))
        return (
            "gone" if any((kind.api_version, kind.kind) == known for kind in self._store.kinds) else "stays"
        )

    @staticmethod
    def _is_held(revision: Revision | None) -> bool:
        return (
            revision is not None
            and is_deleting(revision.json)
            and FOREGROUND in (revision.metadata.get("finalizers") or ())
        )

    def _release_later(self, uid: str) -> None:
        self._todo.append(partial(self._release, uid))

    def _release(self, uid: str) -> None:
        """Take the foreground finalizer off an owner that nothing blocks any more."""
        place = self._store.place_of(uid)
        revision = self._store.get(*place) if place else None
        if place is None or revision is None or not self._is_held(revision) or self.is_blocked(uid):
            return
        meta = dict(revision.metadata)
        meta["finalizers"] = [name for name in meta["finalizers"] if name != FOREGROUND]
        if not meta["finalizers"]:
            del meta["finalizers"]
        new = {**revision.json, "metadata": meta}
        if is_complete(new):
            self._writes.remove(*place)
        else:
            self._writes.put(*place, new)

    def _keep_owners(self, kind: Kind[Any], key: Key, keep: Callable[[Json], bool]) -> None:
        revision = self._store.get(kind, key)
        if revision is None:
            return
        meta = dict(revision.metadata)
        meta["ownerReferences"] = [owner for owner in meta["ownerReferences"] if keep(owner)]
        if not meta["ownerReferences"]:
            del meta["ownerReferences"]
        self._writes.put(kind, key, {**revision.json, "metadata": meta})

    def _unblock(self, kind: Kind[Any], key: Key, revision: Revision) -> None:
        meta = dict(revision.metadata)
        meta["ownerReferences"] = [
            {**owner, "blockOwnerDeletion": False} for owner in meta["ownerReferences"]
        ]
        self._writes.put(kind, key, {**revision.json, "metadata": meta})

    def _delete(self, kind: Kind[Any], key: Key, options: Options = NO_OPTIONS) -> None:
        if self._store.get(kind, key) is not None:
            self._writes.mark_deleted(kind, key, options)

    def _remove_if_empty(self, key: Key) -> None:
        home = self._store.get(NAMESPACES, key)
        if home is None or not is_deleting(home.json) or home.metadata.get("finalizers"):
            return
        if not self._store.in_namespace(key[1]):
            self._writes.remove(NAMESPACES, key)
