"""Results of the scale-up step of a tick: for later steps, statuses and explanations."""

from __future__ import annotations

from typing import Literal

import msgspec

from kubetide.explain.reasons import Reason
from kubetide.nodes.capacity.provisioning.tick import RequestsTick
from kubetide.nodes.decision import Write
from kubetide.nodes.expander.base import Option
from kubetide.nodes.facts.amounts import refusal_text
from kubetide.nodes.registry.view import ClusterView, GroupView
from kubetide.nodes.templates.template import Template
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod
from kubetide.plan.board import Workload
from kubetide.ports.cloud import NewGroup, NodeGroup
from kubetide.scheduling import Refusal
from kubetide.scheduling.estimator.packing import EstimateInParts, Estimator
from kubetide.scheduling.placement import Search
from kubetide.scheduling.pods.grouping import PodGroup
from kubetide.units.time import ZERO, Duration, Instant


class Rejection(msgspec.Struct, frozen=True):
    """Why one group rejects one group of pods: upstream's words, and the scheduler's rejection if there was one."""

    reasons: tuple[str, ...]
    refusal: Refusal | None = None

    @property
    def text(self) -> str:
        """The reasons, with the amounts or the detail of the scheduler's rejection."""
        return ", ".join(self.reasons) if self.refusal is None else refusal_text(self.refusal)


class Verdict(msgspec.Struct):
    """The verdict of each node group on one group of equal pods; accepting groups are not in ``rejected``."""

    pods: PodGroup
    rejected: dict[str, Rejection] = msgspec.field(default_factory=dict)
    accepted: dict[str, None] = msgspec.field(default_factory=dict)
    """The groups that would serve, as keys; not to be changed, verdicts share it."""
    skipped_refuse: dict[str, Rejection] = msgspec.field(default_factory=dict)
    """What groups that are skipped say all the same; only where they are asked."""

    @property
    def refused(self) -> dict[str, Rejection]:
        """The rejections of all groups, of skipped ones too if they were asked."""
        return {**self.rejected, **self.skipped_refuse} if self.skipped_refuse else self.rejected


class Demand(msgspec.Struct):
    """Pending pods after filtering.

    Attributes:
        pods: The pods that need new nodes.
        placed: Pods that fit on existing or upcoming nodes, with the node's name.
        virtual: Pods that do not exist yet, and who wants them; they get no events.
        too_new: Pods that are not old enough to be looked at.
        workloads: The workload of each pod of ``pods`` and ``placed`` that has one.
        overflowing: Controllers with more distinct pods that fit nowhere than are remembered.
        injected: Pods that a controller has yet to make and that fit nowhere; ``over_limit`` more are left out.
        unprocessed: Pods for which no place was looked for.
        consumers: Pods of ProvisioningRequests that fit nowhere: they buy nothing themselves.
        search: The search for places while there are pods that were not looked at; None once it has ended.
        begun: How long the tick had taken when the search began.
    """

    pods: list[Pod] = msgspec.field(default_factory=list)
    placed: list[tuple[Pod, str]] = msgspec.field(default_factory=list)
    virtual: dict[Key, str] = msgspec.field(default_factory=dict)
    too_new: list[Pod] = msgspec.field(default_factory=list)
    workloads: dict[Key, Workload] = msgspec.field(default_factory=dict)
    overflowing: int = 0
    injected: int = 0
    over_limit: int = 0
    unprocessed: int = 0
    consumers: list[Pod] = msgspec.field(default_factory=list)
    search: Search | None = None
    begun: Duration = ZERO


class CostSummary(msgspec.Struct, frozen=True):
    """The purchase over all groups, and its distance from the lower bound of the price.

    Attributes:
        price: Of all new nodes an hour, those for pods with inter-pod rules included.
        bound: No choice that places the same pods on new nodes within the same limits costs less.
        bound_by: What proves the bound.
        greedy_price: What the greedy choice alone would have cost.
        rounds: Rounds of column generation.
        one_by_one: Pods that were placed one by one, as they have inter-pod rules.
        cut: Whether the budget of work ended the search for something cheaper.
        left: Pods that would fit but for which the limits leave no node.
    """

    price: float
    bound: float
    bound_by: str
    greedy_price: float
    rounds: int
    one_by_one: int
    left: int
    cut: bool = False

    @property
    def gap(self) -> float:
        """How far the price is above the bound, as a share of the bound."""
        return max(0.0, self.price / self.bound - 1.0) if self.bound > 0 else 0.0


class Increase(msgspec.Struct):
    """One group's part of a scale-up."""

    group: NodeGroup
    size: int
    """The new target."""
    before: int = -1
    """The target before, where it is not that of ``group`` any more."""

    @property
    def grown_from(self) -> int:
        """The target before."""
        return self.group.target_size if self.before < 0 else self.before


class Round(msgspec.Struct, frozen=True):
    """The report of one attempt at a scale-up, as upstream has it; a tick may have several.

    Attributes:
        result, error: Upstream's words; ``error_type`` too.
        options, chosen, drawn_among: What the expander was asked, and what it said.
        increases: What was asked of the cloud; ``failed`` the groups that it refused.
        triggered: Pods that the new nodes are for.
        remain: Like pods that no group helps, and what each group says to them.
        awaiting: Pods that another group would help, when their turn comes.
        skipped: Groups that are left out, and why.
        considered: All groups that were looked at; none where it did not come to that.
    """

    result: str
    error: str = ""
    error_type: str = ""
    options: tuple[Option, ...] = ()
    chosen: tuple[Option, ...] = ()
    drawn_among: tuple[str, ...] = ()
    increases: tuple[Increase, ...] = ()
    failed: tuple[str, ...] = ()
    triggered: tuple[Pod, ...] = ()
    remain: tuple[tuple[tuple[Pod, ...], dict[str, Rejection]], ...] = ()
    awaiting: tuple[Pod, ...] = ()
    skipped: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    considered: tuple[str, ...] = ()


class OpenEstimate(msgspec.Struct):
    """A partly done estimate; later steps of the tick continue it.

    Attributes:
        parts: What is left of it.
        similar: Groups that may share the increase.
        begun: How long the tick had taken when it began; None before that is known.
        kinds: How many kinds of pods the group takes.
        has_begun: Whether a part of it is made.
        is_cut: Whether its time was over.
    """

    parts: EstimateInParts
    similar: tuple[str, ...]
    begun: Duration | None
    kinds: int
    has_begun: bool = False
    is_cut: bool = False


class Packing(msgspec.Struct):
    """Groups that must still be estimated, and how long the tick had taken when that began."""

    estimator: Estimator
    left: list[str]
    begun: Duration
    open_estimate: OpenEstimate | None = None
    """The estimate for the first of these groups, where a part of it is made."""
    cut: list[str] = []
    """Groups whose estimate ended as its time was over."""


class WouldBe(msgspec.Struct, frozen=True):
    """A group that could be created for the tick's pods.

    Attributes:
        new: What to ask the cloud for.
        view: The group as it would be; it does not exist.
        labels: What was added to the provider's own labels.
    """

    new: NewGroup
    view: GroupView
    labels: dict[str, str] = msgspec.field(default_factory=dict)


class Tick(msgspec.Struct):
    """State of a tick between its steps. The snapshot stays forked as long as it lives.

    Attributes:
        view: The registry's view.
        templates: Of each group; None where nobody knows.
        upcoming: Nodes on their way, by group; they stand in the snapshot.
        upcoming_nodes: Names of those nodes in the snapshot -> group.
        hints: Names of those nodes that were bought for certain pods, by ``hint_key`` of the pod.
        demand: The demand.
        begun: How long the tick had taken when the first attempt at a scale-up began.
        skipped: Groups that are left out, and upstream's words for why.
        verdicts: Each group of like pods and what the node groups say to it.
        packing: What is left of the search for options; None outside of it.
        options: What could be bought; ``chosen`` what was: one, or several that were planned together.
        asking: The options that the expander in a process of its own is asked about; None where it is not.
        answers: What came of that question, and of the expanders before it: reasons for the group that is chosen.
        drawn_among: Groups among which the choice was left to chance.
        cost_summary: How good the choice is, when it was made over all groups at once.
        over_limits: Of each group that a limit over the whole cluster keeps from growing, and of each node
            that one keeps: ``up`` or ``down``, and the resources whose limits these are.
        not_simulated: Nodes whose removal was not tried, as enough were unneeded already or the time was over.
        writes: What is written of CapacityBuffers and CapacityQuotas once the step is over.
        replan: Whether the same pods are to be planned for again at once, as an increase failed.
        again: Whether this is such a second plan.
        new_until: Until when all pods are so new that more may come, and nothing is removed; None where they are not.
        would_be: Groups that could be created for the pods, by id.
        no_candidates: Why there are none of these, where the loop may create groups.
        uncreated: Groups that the cloud would not create.
        requests: What is done about ProvisioningRequests; None where they are not served.
        result: Upstream's word for how scale-up went.
        error, error_type: What went wrong, when ``result`` is ``ScaleUpError``.
        is_open: Whether what was planned has not been answered yet.
        rounds: The attempts at a scale-up that are over.
    """

    view: ClusterView
    templates: dict[str, Template | None] = msgspec.field(default_factory=dict)
    upcoming: dict[str, int] = msgspec.field(default_factory=dict)
    upcoming_nodes: dict[str, str] = msgspec.field(default_factory=dict)
    hints: dict[str, str] = msgspec.field(default_factory=dict)
    demand: Demand = msgspec.field(default_factory=Demand)
    begun: Duration = ZERO
    skipped: dict[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    verdicts: list[Verdict] = msgspec.field(default_factory=list)
    packing: Packing | None = None
    options: list[Option] = msgspec.field(default_factory=list)
    chosen: tuple[Option, ...] = ()
    asking: tuple[Option, ...] | None = None
    answers: tuple[Reason, ...] = ()
    drawn_among: tuple[str, ...] = ()
    cost_summary: CostSummary | None = None
    over_limits: list[tuple[Literal["up", "down"], tuple[str, ...]]] = msgspec.field(default_factory=list)
    not_simulated: tuple[str, ...] = ()
    increases: list[Increase] = msgspec.field(default_factory=list)
    writes: tuple[Write, ...] = ()
    replan: bool = False
    again: bool = False
    new_until: Instant | None = None
    would_be: dict[str, WouldBe] = msgspec.field(default_factory=dict)
    no_candidates: str = ""
    uncreated: tuple[str, ...] = ()
    requests: RequestsTick | None = None
    result: str = "ScaleUpNotTried"
    error: str = ""
    error_type: str = ""
    is_open: bool = True
    rounds: list[Round] = msgspec.field(default_factory=list)

    @property
    def views(self) -> dict[str, GroupView]:
        """All groups that may grow: existing ones, then those that could be created."""
        if not self.would_be:
            return self.view.groups
        return {**self.view.groups, **{name: one.view for name, one in self.would_be.items()}}
