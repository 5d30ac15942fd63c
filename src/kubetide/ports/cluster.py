"""The Cluster port: read, watch and write Kubernetes objects.

Implementations: the embedded cluster in process, and the real API server. All must pass the
battery in ``kubetide.testing.cluster_battery``. Semantics are those of the Kubernetes API
(API concepts page): opaque resource versions, optimistic concurrency, watch from a version.

Objects come back as the type of the ``Kind`` they were asked by: ``PODS`` gives ``Pod`` structs,
``PODS.untyped`` plain JSON with every field. Both are shared and must not be changed.
Bodies and patches go in as plain JSON; the callee neither holds on to them nor changes them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar, cast

from kubetide.objects.base import Json
from kubetide.objects.kinds import Kind
from kubetide.objects.meta import ObjectMeta
from kubetide.objects.workload import Scale
from kubetide.units.time import Duration

T = TypeVar("T")

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
PatchType = Literal["merge", "json", "strategic"]
Propagation = Literal["Background", "Foreground", "Orphan"]


class UnreadableObject(NamedTuple):
    """An object whose fields have other types than its kind's, where only a CustomResourceDefinition checks these.

    ``problem`` names the field, what was expected, and what was found.
    """

    metadata: ObjectMeta
    problem: str


def field_problem(error: Exception) -> str:
    """Return the problem of an ``UnreadableObject``, given why it cannot be read: where, what is expected there, and what is there."""
    said, _, place = str(error).replace("`", "").partition(" - at $")
    said = said.replace("Expected", "expected", 1)
    return f"{place.strip('.')}: {said}" if place else said


class Listing(NamedTuple, Generic[T]):
    """The objects of a kind at one version of the cluster, ordered by namespace and name.

    ``unread`` are those that are not among ``items`` as they cannot be read.
    """

    items: Sequence[T]
    resource_version: str
    unread: Sequence[UnreadableObject] = ()


class WatchEvent(NamedTuple, Generic[T]):
    """One change. ``DELETED`` carries the last state; ``BOOKMARK`` only a version, object None.

    An object that cannot be read comes as ``UnreadableObject``.
    """

    type: EventType
    object: T | UnreadableObject | None
    resource_version: str
    namespace: str
    name: str


class Cluster(Protocol):
    """A Kubernetes cluster. Every method may raise the errors of ``ports.errors``."""

    async def kinds(self) -> Sequence[Kind[Any]]:
        """Return every kind that can be listed now, the preferred version of each group first.

        A kind of ``objects.kinds`` comes as it stands there, with its type; any other, such as one that
        a CustomResourceDefinition brings, is untyped. Groups that do not answer are left out.
        """
        ...

    async def get(self, kind: Kind[T], name: str, *, namespace: str = "") -> T:
        """Return one object. Raises NotFound."""
        ...

    async def list(
        self, kind: Kind[T], *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing[T]:
        """Return all objects of the kind, of one namespace or (empty) of all, that match both selectors."""
        ...

    def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
    ) -> AsyncGenerator[Sequence[WatchEvent[T]], None]:
        """Stream the changes after ``resource_version``, in order, in batches as they arrive.

        With selectors, an object that starts to match comes as ADDED, one that ceases as DELETED.
        An empty batch says that the server has taken the watch on. Raises Expired (from the iteration)
        when the version is too old. The stream may end at any time: watch again from the last version
        seen. Close it with ``aclose()``.
        """
        ...

    async def create(self, kind: Kind[T], body: Json, *, namespace: str = "", dry_run: bool = False) -> T:
        """Create an object; as a dry run return what it would be, with all that admission adds, and store nothing.

        Raises AlreadyExists, Invalid, Forbidden (also by admission), NotFound (namespace).
        """
        ...

    async def replace(
        self, kind: Kind[T], body: Json, *, namespace: str = "", subresource: Literal["", "status"] = ""
    ) -> T:
        """Replace an object (PUT) and return it; with ``metadata.resourceVersion`` in the body, only that version.

        Raises NotFound, Conflict, Invalid.
        """
        ...

    async def patch(
        self,
        kind: Kind[T],
        name: str,
        patch: Json | Sequence[Json],
        *,
        namespace: str = "",
        patch_type: PatchType = "merge",
        subresource: Literal["", "status", "resize"] = "",
    ) -> T:
        """Patch an object; a ``metadata.resourceVersion`` in a merge patch is a precondition.

        Raises NotFound, Conflict, Invalid (also a JSON patch that does not apply), BadRequest.
        """
        ...

    async def delete(
        self,
        kind: Kind[Any],
        name: str,
        *,
        namespace: str = "",
        uid: str = "",
        resource_version: str = "",
        grace_period_s: int | None = None,
        propagation: Propagation = "Background",
    ) -> None:
        """Request deletion: graceful for pods, waiting for finalizers. Raises NotFound, Conflict (preconditions)."""
        ...

    async def get_scale(self, kind: Kind[Any], name: str, *, namespace: str) -> Scale:
        """Return the ``scale`` subresource. Raises NotFound (also for a kind without one)."""
        ...

    async def replace_scale(
        self, kind: Kind[Any], name: str, replicas: int, *, namespace: str, resource_version: str = ""
    ) -> Scale:
        """Write ``spec.replicas`` through ``scale``, with a precondition if a version is given. Raises NotFound, Conflict, Invalid."""
        ...

    async def bind(self, *, namespace: str, pod: str, node: str, uid: str = "") -> None:
        """Bind a pending pod to a node (``binding`` subresource). Raises NotFound, Conflict (already bound or deleted)."""
        ...

    async def evict(
        self, *, namespace: str, pod: str, uid: str = "", grace_period_s: int | None = None
    ) -> None:
        """Evict a pod (policy/v1). Raises TooManyRequests when a disruption budget forbids it, NotFound, Conflict (uid)."""
        ...


class RemoteCluster(Cluster, Protocol):
    """A cluster behind a network with many clients: the interface for its caches."""

    def watch(
        self,
        kind: Kind[T],
        *,
        resource_version: str,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Sequence[WatchEvent[Any]], None]:
        """Like ``Cluster.watch``; ``keep`` as in ``list_and_watch``."""
        ...

    def list_and_watch(
        self,
        kind: Kind[T],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        keep: Callable[[T], Any] | None = None,
    ) -> AsyncGenerator[Listing[Any] | Sequence[WatchEvent[Any]], None]:
        """Stream the result of ``list`` as the first item, then that of ``watch`` from that version on.

        Args:
            keep: What comes in place of each object, made as soon as that is read: so a long list is never
                held as it was sent. Nobody else has the object. Must not raise.
        """
        ...

    def spread(self, pause: Duration) -> Duration:
        """Return a random pause of one to two times that length, so that many clients do not return at once."""
        ...


def as_remote(cluster: Cluster) -> RemoteCluster | None:
    """Return the cluster as a remote one, None for one that is not."""
    return cast("RemoteCluster", cluster) if hasattr(cluster, "list_and_watch") else None


def withheld(cluster: Cluster) -> str:
    """Return why writes to the cluster would be withheld now; empty if they would not, or if there is no guard."""
    refusal: Callable[[], str] | None = getattr(cluster, "refusal", None)
    return refusal() if refusal is not None else ""
