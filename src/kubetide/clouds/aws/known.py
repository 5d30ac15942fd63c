"""The Auto Scaling groups as this process knows them between two refreshes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kubetide.clouds.aws.creation import pattern_of
from kubetide.clouds.aws.groups import Asg, Member
from kubetide.clouds.aws.ids import is_placeholder, placeholder_name, provider_id
from kubetide.clouds.common.ledger import Ledger
from kubetide.ports.cloud import Instance, InstanceError, NodeGroup
from kubetide.ports.errors import CloudError
from kubetide.units.time import Instant, after, seconds

_UNSEEN: Final = seconds(30)
"""For so long AWS may still show a group's size of before our change."""


@dataclass(eq=False)
class Known:
    """A group, its bounds and target, and what we did to it.

    Attributes:
        asg: As AWS described it last.
        min_size, max_size: Of ``--nodes``, or of the group.
        target: How many nodes it is to have: AWS's number, or ours where that is newer.
        shortage: Why it lacks machines; None when it does not, or nobody knows.
        base: What does not depend on instances and sizes: template, options, warnings.
        ended: Provider ids that we ended and AWS still lists.
        is_named: Whether ``--nodes`` names it; such a group is nobody's to delete.
        is_unsure: Whether an order may have changed it without an answer.
    """

    asg: Asg
    min_size: int
    max_size: int
    target: int
    shortage: InstanceError | None = None
    base: NodeGroup = field(default_factory=NodeGroup)
    ended: set[str] = field(default_factory=set)
    stale: str = ""
    is_named: bool = False
    is_unsure: bool = False
    # When we last changed it from each of these sizes.
    _left_at: dict[int, Instant] = field(default_factory=dict)
    _view: NodeGroup | None = None

    @property
    def is_ours(self) -> bool:
        """Whether this program created the group, and nobody has named it since."""
        return pattern_of(self.asg) is not None and not self.is_named

    def set_target(self, size: int, now: Instant) -> None:
        """Note that the size is another one by our doing."""
        self._left_at[self.target] = now
        self.target = size
        self._view = None

    def note_withdrawal(self) -> None:
        """Note that AWS owes no more than the target any more; what it no longer owes has no placeholder."""
        self.asg = self.asg._replace(desired=min(self.asg.desired, self.target))
        self._view = None

    def doubt(self) -> None:
        """Note that nobody knows whether an order was carried out: what AWS says next counts."""
        self.is_unsure = True
        self._left_at.clear()

    def seen(self, asg: Asg, now: Instant) -> None:
        """Take in what AWS says now; its size counts unless it is one that we changed lately.

        Several deletions are a change each, so the answer may be of before any of them.
        """
        self._left_at = {size: at for size, at in self._left_at.items() if now < after(at, _UNSEEN)}
        if asg.desired not in self._left_at:
            self.target = asg.desired
        if asg != self.asg or self.stale:
            self._view = None
        self.asg = asg
        self.stale, self.is_unsure = "", False
        self.ended &= {each.provider_id for each in asg.members}

    def missing(self) -> int:
        """Return how many machines AWS still owes the group."""
        return max(self.asg.desired - len(self.asg.members), 0)

    def placeholders(self) -> tuple[str, ...]:
        """Return provider ids that stand for those machines."""
        if not self.asg.zones:
            return ()
        here = len(self.asg.members)
        return tuple(
            provider_id(self.asg.zones[0], placeholder_name(self.asg.name, number))
            for number in range(here, here + self.missing())
        )

    def has(self, provider_id: str) -> bool:
        """Return whether it is the id of an instance or placeholder of this group."""
        if is_placeholder(provider_id):
            return provider_id in self.placeholders()
        return self.member(provider_id) is not None

    def member(self, provider_id: str) -> Member | None:
        """Return the instance of that id."""
        return next((each for each in self.asg.members if each.provider_id == provider_id), None)

    def view(self) -> NodeGroup:
        """Return the group as the port shows it; the same object until something changes."""
        if self._view is None:
            instances = [Instance(provider_id=each.provider_id) for each in self.asg.members]
            instances += [
                Instance(provider_id=each, state="Creating", error=self.shortage)
                for each in self.placeholders()
            ]
            self._view = _with(self, tuple(instances))
        elif self._view.target_size != self.target:
            self._view = None
            return self.view()
        return self._view

    def dress(self, base: NodeGroup, shortage: InstanceError | None) -> None:
        """Take in a new template and options, and why machines do not come."""
        if base != self.base or shortage != self.shortage:
            self.base, self.shortage, self._view = base, shortage, None

    def keep_old(self, why: str) -> None:
        """Keep the last view of a group that AWS no longer lists, and why."""
        if self.stale != why:
            self.stale, self._view = why, None

    def check_increase(self, delta: int) -> None:
        """Raise CloudError when the group cannot grow by ``delta``."""
        if delta <= 0:
            raise CloudError(f"node group {self.asg.name}: size increase must be positive, not {delta}")
        if self.target + delta > self.max_size:
            raise CloudError(
                f"node group {self.asg.name}: size increase too large - desired:{self.target + delta} max:{self.max_size}"
            )

    def check_delete(self, provider_ids: Sequence[str], ledger: Ledger, *, force: bool) -> None:
        """Raise CloudError when one of these is not of the group, or too few nodes would be left."""
        for each in provider_ids:
            if not self.has(each):
                raise CloudError(
                    f"node group {self.asg.name}: {each} doesn't belong to a known asg of this name"
                )
        doomed = [each for each in provider_ids if not self.is_going(each)]
        size = ledger.size_at_most(self.asg.name, self.target, doomed) if doomed else self.target
        if not force and (size <= self.min_size or size - len(doomed) < self.min_size):
            raise CloudError(
                f"node group {self.asg.name}: min size reached, nodes will not be deleted: minimum {self.min_size}, "
                f"target {size}, to delete {len(doomed)}"
            )

    def is_going(self, provider_id: str) -> bool:
        """Return whether the instance is on its way out already."""
        member = self.member(provider_id)
        return provider_id in self.ended or (member is not None and member.is_terminating)


def _with(known: Known, instances: tuple[Instance, ...]) -> NodeGroup:
    base, asg = known.base, known.asg
    warm = f", warm pool of {asg.warm}" if asg.warm else ""
    return NodeGroup(
        id=asg.name,
        min_size=known.min_size,
        max_size=known.max_size,
        target_size=known.target,
        instances=instances,
        template=base.template,
        template_error=base.template_error,
        options=base.options,
        price_per_hour=base.price_per_hour,
        autoprovisioned=known.is_ours,
        debug=f"{asg.name} ({known.min_size}:{known.max_size}{warm})",
        offerings=base.offerings,
        warnings=base.warnings,
        stale=known.stale,
    )
