"""The versioned store: objects by kind and key, their indexes, a bounded history, watches.

It knows nothing of REST: what may be written is the business of ``rest``. One counter numbers all
writes of all kinds, as etcd's revision does. There is a history per kind, so that a kind that is
written rarely can be watched from far back however busy the others are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from kubetide.embedded.apiserver.store.errors import expired, no_such_resource
from kubetide.embedded.apiserver.store.revision import Change, Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.watcher import Watcher
from kubetide.objects.base import Json
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS, STORED_KINDS, Kind
from kubetide.objects.meta import Key

Place = tuple[Kind[Any], Key]
"""Where an object is: its kind as registered, its namespace and name."""


class BeforeWrite(Protocol):
    """Called with a write of a resource before it is done: the new revision, or the last one of a removal."""

    def __call__(self, resource: str, new: Revision, /, *, removed: bool) -> None: ...


class _Table:
    """All of one kind."""

    def __init__(self, kind: Kind[Any], history: int) -> None:
        self.kind = kind
        self.objects: dict[Key, Revision] = {}
        self.in_order = True
        """Whether ``objects`` iterates in the order of its keys; a removal keeps it so."""
        self.by_namespace: dict[str, dict[Key, None]] = {}
        self.by_node: dict[str, dict[Key, None]] = {}
        self.history: deque[Change] = deque(maxlen=history)
        self.horizon = 0
        """The oldest version that a watch can begin from."""
        self.watchers: list[Watcher] = []
        self.listeners: tuple[Callable[[], None], ...] = ()


class Store:
    """Objects of the given kinds in memory.

    Args:
        kinds: What can be stored.
        history: How many changes of each kind can be replayed to a watch.
        backlog: How many events a watch may hold unread before it is closed as expired.
    """

    def __init__(
        self,
        kinds: Iterable[Kind[Any]] = (*STORED_KINDS, CUSTOM_RESOURCE_DEFINITIONS),
        *,
        history: int = 5_000,
        backlog: int = 10_000,
    ) -> None:
        self.version = 1
        self._backlog = backlog
        self._history = history
        self._tables = {kind.resource: _Table(kind, history) for kind in kinds}
        self._places: dict[str, Place] = {}
        self._dependents: dict[str, dict[tuple[str, Key], None]] = {}
        self.before_write: BeforeWrite | None = None
        """Called for every write before it is done; what it raises refuses the write."""
        self.before_version: Callable[[int], None] | None = None
        """Called with a version that comes of no write, before anybody gets it."""

    @property
    def kinds(self) -> tuple[Kind[Any], ...]:
        """The kinds that can be stored."""
        return tuple(table.kind for table in self._tables.values())

    def registered(self, kind: Kind[Any]) -> Kind[Any]:
        """Return the kind as it was registered, with the model that checks its objects. Raises NotFound."""
        return self._table(kind).kind

    def serve(self, kind: Kind[Any]) -> None:
        """Store a kind from now on, or from now on in this version and with this model."""
        table = self._tables.get(kind.resource)
        if table is None:
            table = self._tables[kind.resource] = _Table(kind, self._history)
            table.horizon = self.version
            return
        before, table.kind = table.kind, kind
        if before.version != kind.version:
            for key, old in table.objects.items():
                table.objects[key] = Revision(old.version, key, {**old.json, "apiVersion": kind.api_version})
        for uid, (stored, key) in self._places.items():
            if stored.resource == kind.resource:
                self._places[uid] = (kind, key)

    def withdraw(self, kind: Kind[Any]) -> None:
        """Store a kind no longer, of which there are no objects any more; its watches end."""
        table = self._tables.pop(kind.resource)
        for watcher in tuple(table.watchers):
            watcher.close()

    def get(self, kind: Kind[Any], key: Key) -> Revision | None:
        """Return the newest revision, or None. Raises NotFound for a kind that is not stored."""
        return self._table(kind).objects.get(key)

    def count(self, kind: Kind[Any]) -> int:
        """Return how many objects of a kind there are."""
        return len(self._table(kind).objects)

    def select(self, kind: Kind[Any], selection: Selection) -> list[Revision]:
        """Return the selected objects in the order of namespace and name."""
        table = self._table(kind)
        found: Iterable[Revision]
        if selection.node_name:
            found = self._pick(table, table.by_node.get(selection.node_name), selection.namespace)
        elif selection.namespace:
            found = self._pick(table, table.by_namespace.get(selection.namespace))
        else:
            if not table.in_order:
                # Nearly sorted already, which is what the sort is fastest at.
                table.objects = dict(sorted(table.objects.items(), key=_key_of_item))
                table.in_order = True
            found = table.objects.values()
        if selection.everything:
            return list(found)
        return [revision for revision in found if selection.matches(revision)]

    def select_at(self, kind: Kind[Any], selection: Selection, version: int) -> list[Revision]:
        """Return the selected objects as they were at ``version``, in the order of ``select``.

        Raises: Expired when the history does not reach back so far, or the version was never given.
        """
        table = self._table(kind)
        if not table.horizon <= version <= self.version:
            raise expired(version, table.horizon)
        then: dict[Key, Revision | None] = {}
        for change in reversed(table.history):
            if change.last.version <= version:
                break
            then[change.last.key] = change.old  # the oldest change since says what was there
        found = self.select(kind, selection)
        if not then:
            return found
        found = [revision for revision in found if revision.key not in then]
        found += [
            old
            for old in then.values()
            if old is not None
            and (not selection.namespace or old.key[0] == selection.namespace)
            and selection.matches(old)
        ]
        return sorted(found, key=_key_of)

    def dependents(self, uid: str) -> list[Place]:
        """Return where the objects are that name this uid as an owner, in the order they came."""
        return [(self._tables[resource].kind, key) for resource, key in self._dependents.get(uid, ())]

    def place_of(self, uid: str) -> Place | None:
        """Return where the object of that uid is, or None."""
        return self._places.get(uid)

    def in_namespace(self, namespace: str) -> list[Place]:
        """Return where the objects of the namespace are, kind by kind, each in order of name."""
        return [
            (table.kind, key)
            for table in self._tables.values()
            for key in sorted(table.by_namespace.get(namespace, ()))
        ]

    def put(self, kind: Kind[Any], key: Key, json: Json) -> Revision:
        """Write an object and return its new revision; only top level and metadata are copied.

        Raises: msgspec.ValidationError, with nothing written, when the kind's model cannot read it.
        """
        table = self._table(kind)
        version = self.version + 1
        new = Revision(version, key, _stamped(json, version))
        old = table.objects.get(key)
        if old is None:
            new.read_as(table.kind.model)
        else:
            new.read_after(old, table.kind.model, same_metadata=json["metadata"] is old.json["metadata"])
        if self.before_write is not None:
            self.before_write(kind.resource, new, removed=False)
        self.version = version
        table.objects[key] = new
        if old is None:
            table.in_order = False
            table.by_namespace.setdefault(key[0], {})[key] = None
            self._places[new.uid] = (table.kind, key)
        self._index(table, old, new)
        self._tell(table, Change(old, new, new))
        return new

    def remove(self, kind: Kind[Any], key: Key) -> Revision:
        """Remove an object that is there and return its last state, with the version of the removal."""
        table = self._table(kind)
        old = table.objects[key]
        last = Revision(self.version + 1, key, _stamped(old.json, self.version + 1))
        last.read_after(old, table.kind.model, same_metadata=True)
        if self.before_write is not None:
            self.before_write(kind.resource, last, removed=True)
        self.version += 1
        del table.objects[key]
        _drop(table.by_namespace, key[0], key)
        self._places.pop(old.uid, None)
        self._index(table, old, None)
        self._tell(table, Change(old, None, last))
        return last

    def restore(self, version: int, objects: Iterable[tuple[str, Key, Json]]) -> None:
        """Put back what an earlier store held: (resource, key, JSON). Watches can begin at ``version``.

        Raises: NotFound for a kind that is not stored, msgspec.ValidationError for an object that
        its kind's model cannot read.
        """
        self.version = max(self.version, version)
        objects = list(objects)
        defined = {key[1] for resource, key, _ in objects if resource == CUSTOM_RESOURCE_DEFINITIONS.resource}
        for resource, key, json in objects:
            if resource in defined and resource not in self._tables:
                self.serve(_provisional(resource, key, json))
            table = self._tables.get(resource)
            if table is None:
                raise no_such_resource()
            revision = Revision(int(json["metadata"]["resourceVersion"]), key, json)
            revision.read_as(table.kind.model)
            table.objects[key] = revision
            table.in_order = False
            table.by_namespace.setdefault(key[0], {})[key] = None
            self._places[revision.uid] = (table.kind, key)
            self._index(table, None, revision)
        for table in self._tables.values():
            table.horizon = self.version

    def watch(self, kind: Kind[Any], selection: Selection, version: int | None) -> Watcher:
        """Open a watch for the changes after ``version``; None begins with what is there.

        Raises: Expired when the version is older than the history, or was never given by this store.
        """
        table = self._table(kind)
        watcher = Watcher(selection, self._backlog, table.watchers.remove)
        if version is None:
            for revision in self.select(kind, selection):
                watcher.show(revision, self.version)
        elif not table.horizon <= version <= self.version:
            raise expired(version, table.horizon)
        table.watchers.append(watcher)
        if version is not None:
            start = bisect_right(table.history, version, key=_version_of)
            for change in list(table.history)[start:]:
                watcher.offer(change)
        watcher.opened()
        return watcher

    def on_change(self, kind: Kind[Any], listener: Callable[[], None]) -> None:
        """Call ``listener`` after each write of the kind from now on."""
        table = self._table(kind)
        table.listeners = (*table.listeners, listener)

    def close_watches(self, *, expire: bool) -> None:
        """End every open watch; with ``expire``, forgets the history too, so that all must list again."""
        if expire:
            # Whatever a reader has seen last is now older than the horizon.
            if self.before_version is not None:
                self.before_version(self.version + 1)
            self.version += 1
        for table in self._tables.values():
            if expire:
                table.history.clear()
                table.horizon = self.version
            for watcher in tuple(table.watchers):
                watcher.close(expired(self.version - 1, self.version) if expire else None)

    def _table(self, kind: Kind[Any]) -> _Table:
        table = self._tables.get(kind.resource)
        if table is None:
            raise no_such_resource()
        return table

    @staticmethod
    def _pick(table: _Table, keys: Iterable[Key] | None, namespace: str = "") -> Iterable[Revision]:
        objects = table.objects
        return [objects[key] for key in sorted(keys or ()) if not namespace or key[0] == namespace]

    def _index(self, table: _Table, old: Revision | None, new: Revision | None) -> None:
        """Keep the indexes of what can change: owners, and the node of a pod."""
        key = (new or old).key  # type: ignore[union-attr]  # one of them is there
        if _owner_references(old) != _owner_references(new):
            before, after = _owners(old), _owners(new)
            for uid in before:
                if uid not in after:
                    _drop(self._dependents, uid, (table.kind.resource, key))
            for uid in after:
                if uid not in before:
                    self._dependents.setdefault(uid, {})[table.kind.resource, key] = None
        if table.kind.resource == "pods":
            was, now = _node(old), _node(new)
            if was != now:
                if was:
                    _drop(table.by_node, was, key)
                if now:
                    table.by_node.setdefault(now, {})[key] = None

    def _tell(self, table: _Table, change: Change) -> None:
        history = table.history
        if len(history) == history.maxlen:
            table.horizon = history[0].last.version if history else self.version
        history.append(change)
        for listener in table.listeners:
            listener()
        # A copy, as a watcher that overflows takes itself out.
        for watcher in tuple(table.watchers):
            watcher.offer(change)


def _provisional(resource: str, key: Key, json: Json) -> Kind[Any]:
    """Return what an object says of its custom kind, until the kind's definition is read."""
    plural, _, group = resource.partition(".")
    version = json["apiVersion"].rpartition("/")[2]
    return Kind(group, version, json["kind"], plural, dict, namespaced=bool(key[0]))


def _stamped(json: Json, version: int) -> Json:
    return {**json, "metadata": {**json["metadata"], "resourceVersion": str(version)}}


def _owner_references(revision: Revision | None) -> Sequence[Json]:
    return () if revision is None else revision.json["metadata"].get("ownerReferences") or ()


def _owners(revision: Revision | None) -> Sequence[str]:
    # An owner may be named twice.
    return tuple(dict.fromkeys(owner.get("uid", "") for owner in _owner_references(revision)))


def _node(revision: Revision | None) -> str:
    return "" if revision is None else (revision.json.get("spec") or {}).get("nodeName") or ""


def _drop(index: dict[str, dict[Any, None]], value: str, key: object) -> None:
    keys = index[value]
    del keys[key]
    if not keys:
        del index[value]


def _key_of_item(item: tuple[Key, Revision]) -> Key:
    return item[0]


def _key_of(revision: Revision) -> Key:
    return revision.key


def _version_of(change: Change) -> int:
    return change.last.version
