"""Node groups whose nodes are objects and nothing more: an increase creates Nodes, a deletion deletes them.

All that is known of a group is in the cluster, so a restart and another leader find it as it was left. Nodes stay
when the program ends; upstream's provider deletes them then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeVar

from kubetide.acting import in_parallel
from kubetide.clouds.common.sizes import check_delete, check_increase, decreased, increased
from kubetide.clouds.kwok.config import KwokConfig
from kubetide.clouds.kwok.nodes import FakeNode, FakeNodes
from kubetide.clouds.kwok.templates import FAKE, GROUP, KwokGroup
from kubetide.objects.kinds import NODES
from kubetide.objects.meta import Condition, ObjectMeta
from kubetide.objects.node import Node, NodeStatus, node_condition
from kubetide.ports.clock import Clock
from kubetide.ports.cloud import Cloud, NodeGroup
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import (
    AlreadyExists,
    ApiError,
    CloudCause,
    CloudError,
    CloudWithheld,
    Forbidden,
    InternalError,
    NotFound,
    TooManyRequests,
    Unauthorized,
    Withheld,
)
from kubetide.units.seeds import name_suffix
from kubetide.watching import Informer

T = TypeVar("T")
NAME: Final = "kwok"
_AT_ONCE = 8
"""Nodes that are written at the same time."""
_CAUSES: Final[dict[type[ApiError], CloudCause]] = {
    Forbidden: "Permission",
    Unauthorized: "Permission",
    TooManyRequests: "Throttled",
}


class KwokCloud(Cloud):
    """See the module."""

    name = NAME

    def __init__(
        self, cluster: Cluster, clock: Clock, config: KwokConfig, groups: Sequence[KwokGroup], *, seed: int
    ) -> None:
        self._cluster, self._config = cluster, config
        self._groups = {group.name: group for group in groups}
        self._templates = {group.name: group.node_template() for group in groups}
        self._informer: Informer[Node] = Informer(cluster, NODES, clock, keep=_slim)
        self._nodes = FakeNodes(self._informer, clock)
        self._seed, self._drawn = seed, 0
        # Two changes at once would each see the size before the other.
        self._changing = asyncio.Lock()

    @property
    def gpu_label(self) -> str:
        """The label that the configuration names."""
        return self._config.gpu_label

    @property
    def gpu_types(self) -> Sequence[str]:
        """The types that the configuration names."""
        return self._config.gpu_types

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Cloud]:
        """Watch the nodes as long as it is open."""
        async with self._informer.running():
            yield self

    async def refresh(self) -> Sequence[NodeGroup]:
        """Return the groups, by id. Raises CloudError before the first list of nodes."""
        self._check_synced()
        members: dict[str, list[FakeNode]] = {name: [] for name in self._groups}
        for node in self._nodes.all():
            if node.group in members:
                members[node.group].append(node)
        return [
            NodeGroup(
                id=name,
                min_size=group.min_size,
                max_size=group.max_size,
                target_size=_target(members[name]),
                instances=tuple(node.instance() for node in members[name]),
                template=self._templates[name],
                debug=f"{name} ({group.min_size}:{group.max_size}), nodes of kwok",
                stale=self._problem(),
            )
            for name, group in sorted(self._groups.items())
        ]

    async def increase_size(self, group_id: str, delta: int) -> None:
        """Create ``delta`` nodes. Raises CloudError, also when some of them could not be created."""
        group = self._group(group_id)
        check_increase(delta)
        async with self._changing:
            target = _target(self._nodes.of(group_id).values())
            increased(target, delta, group.max_size)
            await _told(
                f"{group_id}: {delta} more nodes",
                in_parallel(range(delta), lambda _: self._create(group), limit=_AT_ONCE),
            )

    async def decrease_target_size(self, group_id: str, delta: int) -> None:
        """Delete ``delta`` nodes that kwok does not play yet. Raises CloudError where there are fewer."""
        self._group(group_id)
        async with self._changing:
            nodes = [node for node in self._nodes.of(group_id).values() if node.state != "Deleting"]
            waiting = [node for node in nodes if node.state == "Creating"]
            decreased(len(nodes), delta, len(nodes) - len(waiting))
            await self._delete(group_id, waiting[-delta:])

    async def delete_nodes(self, group_id: str, provider_ids: Sequence[str], *, force: bool = False) -> None:
        """Delete these nodes; those that end already are left out. Raises CloudError."""
        group = self._group(group_id)
        async with self._changing:
            known = self._nodes.of(group_id)
            foreign = sorted(set(provider_ids) - known.keys())
            if foreign:
                raise CloudError(f"{', '.join(foreign)}: no node that kwok plays in node group {group_id}")
            doomed = [known[one] for one in sorted(set(provider_ids))]
            doomed = [node for node in doomed if node.state != "Deleting"]
            if doomed and not force:
                check_delete(_target(known.values()), group.min_size, len(doomed))
            await self._delete(group_id, doomed)

    def _check_synced(self) -> None:
        if not self._informer.has_synced:
            problem = f": {self._informer.last_error}" if self._informer.last_error else ""
            raise CloudError(f"the nodes have not been listed yet{problem}")

    def _problem(self) -> str:
        """Return why the known nodes may be out of date; empty while they are watched."""
        informer = self._informer
        return f"the nodes cannot be watched: {informer.last_error}" if informer.failures else ""

    def _group(self, group_id: str) -> KwokGroup:
        """Return a group that may be changed. Raises CloudError, also while its nodes may be out of date."""
        self._check_synced()
        problem = self._problem()
        if problem:
            raise CloudError(f"{group_id}: {problem}; nothing is ordered until they can be")
        group = self._groups.get(group_id)
        if group is None:
            raise CloudError(f"{group_id}: no node group of kwok's templates")
        return group

    async def _create(self, group: KwokGroup) -> None:
        while True:
            self._drawn += 1
            name = f"{group.name}-{name_suffix(self._seed, group.name, self._drawn)}"
            if self._nodes.taken(name):
                continue
            with suppress(AlreadyExists):
                creation = self._cluster.create(NODES, group.new_node(name))
                self._nodes.created(await self._write(FakeNode(name, group.name, "Creating"), creation))
                return

    async def _delete(self, group_id: str, nodes: Sequence[FakeNode]) -> None:
        async def delete(node: FakeNode) -> None:
            # One that kwok plays since the cache was filled may have pods: only what was seen is withdrawn.
            version = node.version if node.state == "Creating" else ""
            deletion = self._cluster.delete(NODES, node.name, resource_version=version)
            with suppress(NotFound):
                await self._write(node._replace(state="Deleting"), deletion)
            self._nodes.deleted(node.name)

        await _told(f"{group_id}: deletion of {len(nodes)} nodes", in_parallel(nodes, delete, limit=_AT_ONCE))

    async def _write(self, node: FakeNode, request: Awaitable[T]) -> T:
        """Return the answer to a write that leaves the node so; it counts from now on, unless it is refused. Raises ApiError."""
        self._nodes.expect(node)
        try:
            return await request
        except ApiError as error:
            if error.code < InternalError.code:
                self._nodes.refused(node.name)
            raise


def _target(nodes: Iterable[FakeNode]) -> int:
    return sum(node.state != "Deleting" for node in nodes)


async def _told(what: str, work: Awaitable[object]) -> None:
    """Wait for writes; what the API server refuses is what a cloud refuses. Raises CloudError."""
    try:
        await work
    except Withheld as error:
        raise CloudWithheld(str(error)) from error
    except ApiError as error:
        cause = _CAUSES.get(type(error), "Other")
        raise CloudError(f"{what}: {error}", error_code=error.reason or "Unknown", cause=cause) from error


def _slim(node: Node) -> Node:
    """Keep what ``fake_node`` reads."""
    meta, ready = node.metadata, node_condition(node, "Ready")
    notes = {key: value for key, value in (meta.annotations or {}).items() if key in {FAKE[0], GROUP}}
    return Node(
        metadata=ObjectMeta(
            name=meta.name,
            annotations=notes or None,
            deletion_timestamp=meta.deletion_timestamp,
            resource_version=meta.resource_version,
        ),
        status=NodeStatus(
            conditions=None if ready is None else (Condition(type="Ready", reason=ready.reason),)
        ),
    )
