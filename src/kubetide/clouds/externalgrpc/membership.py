"""Which group the provider says that each node is in (``NodeGroupForNode``), and what follows for the groups' machines.

Upstream asks for each node in every loop. Here an answer holds for a minute, as long as what other clouds list, and a
refresh renews a bounded number of them, so that 15,000 nodes are asked for within ten minutes. Nothing is deleted on an
answer that is held: the provider is asked once more then.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from kubetide.acting.parallel import in_parallel
from kubetide.objects.node import Node
from kubetide.ports.cloud import Instance, NodeGroup
from kubetide.ports.errors import CloudError, CloudUnsupported
from kubetide.units.time import Instant, after, minutes

_HOLDS: Final = minutes(1)
_MOST_RENEWED: Final = 250
_AT_ONCE: Final = 8
_NO_ANSWER: Final = frozenset({"DeadlineExceeded", "Unavailable"})
_MOST_UNANSWERED: Final = _AT_ONCE
"""After so many calls without an answer a refresh asks no more: each takes as long as the time-out."""

Ask = Callable[[Node], Awaitable[str]]
"""Returns the id of a node's group, empty for none. Raises CloudError, CloudUnsupported."""


class _Answer(NamedTuple):
    """What a node was described by when it was last asked for, when, and its group; None where it was never answered."""

    node: Node
    at: Instant
    group: str | None
    error: str = ""


class Membership:
    """The answers of a provider."""

    def __init__(self, ask: Ask, now: Callable[[], Instant]) -> None:
        self._ask, self._now = ask, now
        self._answers: dict[tuple[str, str], _Answer] = {}
        self._unanswered = 0
        self.supported = True
        """Whether the provider has the method. One that has not can leave no node alone: what it lists is all it says."""

    async def renew(self, nodes: Iterable[Node]) -> None:
        """Ask for the nodes that are new, and for the others whose answers are due; forget all that are not there."""
        present = {_key(node): node for node in nodes}
        self._answers = {key: answer for key, answer in self._answers.items() if key in present}
        due = self._due(present)
        self._unanswered, self.supported = 0, True
        if not due:
            return
        # One first: of a provider without the method nobody needs to ask for all.
        await self._renew_one(due[0])
        if self.supported:
            await in_parallel(due[1:], self._renew_one, limit=_AT_ONCE)

    def _due(self, present: Mapping[tuple[str, str], Node]) -> list[Node]:
        """Return new nodes, then as many as may be renewed: those that have changed or failed before old answers."""
        now, answers = self._now(), self._answers
        again = [
            (answer.node == node and not answer.error, answer.at, key)
            for key, node in present.items()
            if (answer := answers.get(key))
            and (answer.node != node or answer.error or after(answer.at, _HOLDS) <= now)
        ]
        new = [node for key, node in sorted(present.items(), key=_first) if key not in answers]
        return [*new, *(present[key] for _, _, key in sorted(again)[:_MOST_RENEWED])]

    async def _renew_one(self, node: Node) -> None:
        if self._unanswered >= _MOST_UNANSWERED:
            return
        try:
            await self.ask(node)
        except CloudError as error:
            former = self._answers.get(_key(node))
            if isinstance(error, CloudUnsupported) and not any(
                one.group is not None for one in self._answers.values()
            ):
                self.supported = False
                return
            self._unanswered += error.error_code in _NO_ANSWER
            group = former.group if former else None
            self._answers[_key(node)] = _Answer(node, self._now(), group, error.error_code)

    async def ask(self, node: Node) -> str:
        """Return the present answer for a node, and hold it. Raises CloudError, CloudUnsupported."""
        group = await self._ask(node)
        self._answers[_key(node)] = _Answer(node, self._now(), group)
        return group

    def group_of(self, node: Node) -> str | None:
        """Return the group that was last answered for a node, empty for none; None where there is no answer yet."""
        answer = self._answers.get(_key(node))
        return None if answer is None else answer.group

    def error_of(self, node: Node) -> str:
        """Return the code of the error of the last question for a node; empty if it was answered, or not asked."""
        answer = self._answers.get(_key(node))
        return "" if answer is None else answer.error


def _key(node: Node) -> tuple[str, str]:
    return node.metadata.name, node.spec.provider_id


def _first(item: tuple[tuple[str, str], Node]) -> tuple[str, str]:
    return item[0]


def placed(groups: Sequence[NodeGroup], asked: Mapping[str, Node], membership: Membership) -> list[NodeGroup]:
    """Return the groups with the machines that their provider says are theirs.

    A machine whose node is in no group, or of which that is not known, stays where it is listed, to be left alone. A
    node that no list names has a machine of its own; so a group may be known by names or labels alone.

    Args:
        groups: The groups as the provider lists them.
        asked: The nodes that were asked for, by machine, and the stand-ins of machines that have none.
        membership: The answers.
    """
    machines: dict[str, list[Instance]] = {group.id: [] for group in groups}
    unknown: dict[str, str] = {}
    listed: set[str] = set()
    for group in groups:
        for one in group.instances or ():
            listed.add(one.provider_id)
            node = asked.get(one.provider_id)
            home = group.id if node is None else membership.group_of(node)
            if home in machines:
                machines[home].append(one)
                continue
            machines[group.id].append(replace(one, managed=False))
            if home is None and node is not None:
                unknown[group.id] = membership.error_of(node)
    for machine, node in asked.items():
        home = membership.group_of(node)
        if machine not in listed and home in machines:
            machines[home].append(Instance(provider_id=machine))
    return [_with(group, machines[group.id], unknown.get(group.id)) for group in groups]


def _with(group: NodeGroup, machines: Sequence[Instance], unknown: str | None) -> NodeGroup:
    if group.instances is None:
        return group
    warnings = None
    if unknown is not None:
        why = f" ({unknown})" if unknown else ""
        warnings = (
            f"the provider has not said of all its nodes whether they belong to it{why}; those are left alone",
        )
    return replace(group, instances=tuple(machines), warnings=warnings)
