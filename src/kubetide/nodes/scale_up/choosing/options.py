"""Expansion options: what each group could do for the pods, or why it is skipped.

Source: Cluster Autoscaler's scale-up orchestrator: valid groups, schedulable pod groups, binpacking.
"""

from __future__ import annotations

from kubetide.nodes.expander import Option, packs_all_groups
from kubetide.nodes.reasons import (
    ALL_OR_NOTHING,
    ATOMIC_OVER_MAX_TOTAL,
    BACKED_OFF,
    MAX_SIZE_REACHED,
    NO_PRICE,
    NOT_READY,
    OUT_OF_STOCK,
    USELESS,
    exceeded_resources,
    quota_exceeded,
)
from kubetide.nodes.registry.backoff import is_backed_off
from kubetide.nodes.registry.failures import is_zero_or_max
from kubetide.nodes.registry.stock_outs import is_out_of_stock, may_be_tried
from kubetide.nodes.registry.view import GroupView
from kubetide.nodes.scale_up.choosing.evaluate import evaluate_templates
from kubetide.nodes.scale_up.choosing.excluded_groups import (
    asks_of_labels,
    keep_last_choices,
    keep_to_every_way,
)
from kubetide.nodes.scale_up.increase.balancing import are_similar
from kubetide.nodes.scale_up.increase.limits import Headroom
from kubetide.nodes.scale_up.pending.pods import kind_of
from kubetide.nodes.scale_up.tick import OpenEstimate, Packing, Rejection, Tick, Verdict
from kubetide.nodes.state import State
from kubetide.nodes.templates.matrix import TemplateMatrix
from kubetide.nodes.templates.spread import Ways, spread_text
from kubetide.nodes.templates.template import Template
from kubetide.objects.pod import Pod
from kubetide.ports.cloud import NodeGroup
from kubetide.scheduling.estimator.packing import (
    Estimate,
    Estimator,
    Limits,
    cluster_threshold,
    similar_groups_threshold,
)
from kubetide.scheduling.pods.grouping import equivalence_groups
from kubetide.units.time import Duration, Instant

CLUSTER_WIDE = "cluster-wide"
KINDS_IN_A_STEP = 1000
"""After estimates of so many kinds of pods, each counted once for each group, the time is looked at, too."""


def skip_reasons(
    view: GroupView,
    group: NodeGroup,
    template: Template | None,
    headroom: Headroom,
    *,
    backed_off: bool,
    nodes: int,
    max_nodes_total: int,
) -> tuple[str, ...]:
    """Return upstream's words for why the group is skipped; none if it is not.

    Args:
        view: The group as the registry sees it.
        group: The group as it is now.
        template: What its nodes look like.
        headroom: The cluster-wide limits.
        backed_off: Whether the group has failed lately.
        nodes: Nodes in the cluster, those on their way included.
        max_nodes_total: The flag, 0 for no limit.
    """
    # Of a group that does not exist a provider may show the view: as upstream has it, nothing can be wrong with it so far.
    if group.exists and not view.healthy:
        return (NOT_READY,)
    if group.exists and backed_off:
        return (BACKED_OFF,)
    if group.target_size >= group.max_size:
        return (MAX_SIZE_REACHED,)
    atomic = is_zero_or_max(group)
    count = group.max_size - group.target_size if atomic else 1
    if atomic and max_nodes_total and nodes + count > max_nodes_total:
        return (ATOMIC_OVER_MAX_TOTAL,)
    if template is None:
        return (NOT_READY,)  # upstream's word for it
    exceeded = headroom.exceeded_by(template.capacity, count)
    quotas = [
        *([(CLUSTER_WIDE, exceeded)] if exceeded else ()),
        *headroom.exceeded_quotas(template.node, count),
    ]
    return tuple(quota_exceeded(name, resources) for name, resources in quotas)


def group_pods(state: State, tick: Tick) -> None:
    """Store the pods in the tick in groups of equal ones, without verdicts yet."""
    state.phases.begin("scaleUp:buildPodEquivalenceGroups")
    tick.verdicts = [Verdict(pods) for pods in equivalence_groups(tick.demand.pods)]
    state.phases.end("scaleUp:buildPodEquivalenceGroups")


def group_of(state: State, tick: Tick, group_id: str) -> NodeGroup:
    """Return a group of ``tick.views`` as it is now, or would be if created."""
    would_be = tick.would_be.get(group_id)
    return state.groups[group_id] if would_be is None else would_be.view.group


def evaluate_groups(state: State, tick: Tick, headroom: Headroom, now: Instant) -> None:
    """Store in the tick the skipped groups, and each group's verdict on the grouped pods.

    The pods and the snapshot are those of the tick; the snapshot is left as found.
    """
    needs_price = packs_all_groups(state.settings.expander)
    nodes = len(state.snapshot)
    state.snapshot.add_guards(verdict.pods.pod_class for verdict in tick.verdicts)
    offered: list[tuple[str, Template]] = []
    last_choices: dict[str, None] = {}
    for group_id, view in tick.views.items():
        group, template = group_of(state, tick, group_id), tick.templates[group_id]
        backed_off = is_backed_off(state.memory.backoff.get(group_id), now)
        skipped = skip_reasons(
            view,
            group,
            template,
            headroom,
            backed_off=backed_off,
            nodes=nodes,
            max_nodes_total=state.settings.max_nodes_total,
        )
        if not skipped and group_id in tick.would_be and backed_off:
            skipped = (BACKED_OFF,)
        out_of_stock = not skipped and is_out_of_stock(state, group, now)
        if out_of_stock and not may_be_tried(state, group, now):
            skipped = (OUT_OF_STOCK,)
        if not skipped and needs_price and group.price_per_hour is None:
            skipped = (NO_PRICE,)
        if skipped:
            tick.skipped[group_id] = skipped
            tick.over_limits.append(("up", exceeded_resources(skipped)))
            continue
        assert template is not None, "a group without template is skipped"
        offered.append((group_id, template))
        if out_of_stock:
            last_choices[group_id] = None
    _evaluate(state, tick, offered, now)
    if last_choices:
        keep_last_choices(tick, last_choices)
    if state.settings.scaleup_simulation_for_skipped_node_groups_enabled:
        _ask_skipped(state, tick)


def _ask_skipped(state: State, tick: Tick) -> None:
    """Note which skipped groups would not serve anyway: the events of pods give the true reason of those."""
    asked = [(group_id, template) for group_id in tick.skipped if (template := tick.templates[group_id])]
    if not asked:
        return
    state.phases.begin("scaleUp:skippedNodeGroupsSimulation")
    templates = TemplateMatrix([template for _, template in asked], state.snapshot.facts)
    found = evaluate_templates(state.snapshot, templates, [one.pods.pod_class for one in tick.verdicts])
    for verdict in tick.verdicts:
        refusals = found[verdict.pods.pod_class]
        verdict.skipped_refuse = {
            asked[at][0]: Rejection(refusal.reasons, refusal) for at, refusal in refusals.items()
        }
    state.phases.end("scaleUp:skippedNodeGroupsSimulation")


def find_options(state: State, tick: Tick) -> None:
    """Store the tick's options: the nodes that each group that is not skipped needs for the pods that it accepts."""
    begin_packing(state, tick)
    pack(state, tick, most=None)


def begin_packing(state: State, tick: Tick) -> None:
    """Note which groups must still be estimated."""
    estimator = Estimator(state.snapshot, [verdict.pods for verdict in tick.verdicts])
    left = [group_id for group_id in tick.views if group_id not in tick.skipped]
    tick.packing = Packing(estimator, left, state.elapsed)


def pack(state: State, tick: Tick, *, most: int | None) -> None:
    """Add the options of the next groups, at most ``most`` of them or all; after the last one ``tick.packing`` is None.

    With ``most`` fewer are asked where they take many kinds of pods, and an estimate that takes long is gone on with in the next step, until its time is over.
    """
    packing = tick.packing
    assert packing is not None, "it has begun"
    asked = kinds = 0
    while packing.left and (most is None or (asked < most and kinds < KINDS_IN_A_STEP)):
        group_id = packing.left[0]
        group = group_of(state, tick, group_id)
        estimate = resumed = packing.open_estimate
        if estimate is None:
            # Only of the first one of a step it is known how long the tick had taken before.
            begun = None if asked else state.elapsed
            estimate = _begin_estimate(state, tick, group, packing.estimator, begun)
        option = None
        if estimate is not None:
            packed = _continue_estimate(state, tick, group_id, estimate, in_parts=most is not None)
            packing.open_estimate = estimate if packed is None else None
            if packed is None:
                return
            option = _option(state, tick, group, estimate.similar, packed)
            kinds += estimate.kinds
        if option is not None:
            tick.options.append(option)
        packing.left.pop(0)
        asked += 1
        if resumed is not None:
            break  # the time is looked at before another group is asked
    if not packing.left:
        tick.packing = None


def _continue_estimate(
    state: State, tick: Tick, group_id: str, estimate: OpenEstimate, *, in_parts: bool
) -> Estimate | None:
    """Return the estimate; None where another step is to go on with it."""
    limit = state.settings.max_nodegroup_binpacking_duration  # 0 is no limit, as upstream
    is_over = bool(limit) and estimate.begun is not None and state.elapsed - estimate.begun > limit
    state.phases.begin("scaleUp:estimate")
    try:
        if not estimate.has_begun:
            estimate.has_begun = True
            next(estimate.parts)
        else:
            if estimate.begun is None:
                estimate.begun = state.elapsed
            if is_over and not estimate.is_cut:
                assert tick.packing is not None, "it goes on"
                tick.packing.cut.append(group_id)
                estimate.is_cut = True
            estimate.parts.send(is_over)
        while not in_parts or estimate.is_cut:
            estimate.parts.send(estimate.is_cut)
    except StopIteration as end:
        packed: Estimate = end.value
        return packed
    finally:
        state.phases.end("scaleUp:estimate")
    return None


def keep_whole_options(tick: Tick) -> None:
    """Keep the options that place all pods; the verdicts of the other groups name that as their reason."""
    whole = [one for one in tick.options if len(one.pods) == len(tick.demand.pods)]
    whole_groups = {one.group.id: None for one in whole}
    for option in tick.options:
        if option.group.id not in whole_groups:
            for verdict in tick.verdicts:
                verdict.rejected.setdefault(option.group.id, Rejection((ALL_OR_NOTHING,)))
    for verdict in tick.verdicts:
        verdict.accepted = {name: None for name in verdict.accepted if name in whole_groups}
    tick.options = whole


def similar_groups(state: State, tick: Tick, group: NodeGroup) -> tuple[str, ...]:
    """Return the groups that may share an increase of this one, in order of id.

    A similar group exists, is offered itself and takes every kind of pods that this one takes.
    """
    template = tick.templates[group.id]
    if (
        group.id in tick.would_be
        or not state.settings.balance_similar_node_groups
        or is_zero_or_max(group)
        or template is None
    ):
        return ()
    found = []
    for other_id in tick.view.groups:
        other = tick.templates[other_id]
        if other_id == group.id or other is None or other_id in tick.skipped:
            continue
        takes_all = all(
            other_id in verdict.accepted for verdict in tick.verdicts if group.id in verdict.accepted
        )
        if takes_all and are_similar(template, other, state.settings):
            found.append(other_id)
    return tuple(found)


def _evaluate(state: State, tick: Tick, groups: list[tuple[str, Template]], now: Instant) -> None:
    """Fill in the verdicts of groups that are not skipped."""
    classes = [verdict.pods.pod_class for verdict in tick.verdicts]
    evaluated = evaluate_templates(
        state.snapshot, _template_matrix(state, [template for _, template in groups]), classes
    )
    names = [group_id for group_id, _ in groups]
    pinned = any(asks_of_labels(pod_class) for pod_class in classes)
    ways = _ways(state, tick, groups) if pinned else {}
    rejections: dict[int, Rejection] = {}
    accepted: dict[tuple[int, ...], dict[str, None]] = {}
    for verdict in tick.verdicts:
        refusals = evaluated[verdict.pods.pod_class]
        for at, refusal in refusals.items():
            # Refusals live as long as ``evaluated``; many classes and templates share one.
            rejection = rejections.get(id(refusal))
            if rejection is None:
                rejection = rejections[id(refusal)] = Rejection(refusal.reasons, refusal)
            verdict.rejected[names[at]] = rejection
        refused = tuple(refusals)
        if refused not in accepted:
            accepted[refused] = {name: None for at, name in enumerate(names) if at not in refusals}
        verdict.accepted = accepted[refused]
        keep_to_every_way(verdict, ways)
        useless = _useless(state, tick, verdict, now)
        if useless:
            verdict.accepted = {name: None for name in verdict.accepted if name not in useless}
            rejected = {name: Rejection((USELESS,)) for name in names if name in useless}
            every = {**verdict.rejected, **rejected}
            verdict.rejected = {name: every[name] for name in names if name in every}


def _ways(state: State, tick: Tick, groups: list[tuple[str, Template]]) -> dict[str, Ways]:
    """Return the ways in which the next node may come, of groups that have several."""
    if not state.settings.group_must_fit_in_every_zone:
        return {}
    facts = state.snapshot.facts
    return {
        group_id: Ways(template, group, facts)
        for group_id, template in groups
        if spread_text(group := group_of(state, tick, group_id))
    }


def _template_matrix(state: State, templates: list[Template]) -> TemplateMatrix:
    """Return the template matrix of an earlier tick, where it still holds."""
    facts, template_matrix = state.snapshot.facts, state.template_matrix
    if template_matrix is None or not state.memo or not template_matrix.holds(templates, facts):
        template_matrix = state.template_matrix = TemplateMatrix(templates, facts)
    return template_matrix


def _useless(state: State, tick: Tick, verdict: Verdict, now: Instant) -> set[str]:
    """The groups whose nodes have lately not helped pods of this kind."""
    found = state.memory.useless
    if not found:
        return set()
    kind = kind_of(verdict.pods.pods[0])
    return {group for group in tick.views if (one := found.get(f"{group} {kind}")) and one.until > now}


def _begin_estimate(
    state: State, tick: Tick, group: NodeGroup, estimator: Estimator, begun: Duration | None
) -> OpenEstimate | None:
    """Return the estimate of how many nodes of a group its pods need; None where it takes none of them."""
    template = tick.templates[group.id]
    takes = [at for at, verdict in enumerate(tick.verdicts) if group.id in verdict.accepted]
    if template is None or not takes:
        return None
    settings = state.settings
    similar = similar_groups(state, tick, group)
    sharing = [group, *(state.groups[one] for one in similar)]
    sizes = [(one.max_size, one.target_size) for one in sharing]
    limits = Limits(
        (
            settings.max_nodes_per_scaleup,
            similar_groups_threshold(sizes),
            cluster_threshold(settings.max_nodes_total, len(state.snapshot)),
        )
    )
    parts = estimator.estimate(
        template.node,
        template.pods,
        takes,
        limits,
        start=state.memory.rotation,
        fast_path=settings.fastpath_binpacking_enabled,
    )
    return OpenEstimate(parts, similar, begun, kinds=len(takes))


def _option(
    state: State, tick: Tick, group: NodeGroup, similar: tuple[str, ...], packed: Estimate
) -> Option | None:
    template = tick.templates[group.id]
    state.memory.rotation = packed.start
    # In the order in which they were packed: a salvo puts them onto the new nodes in this order again.
    pods: tuple[Pod, ...] = tuple(pod for at in packed.order for pod in packed.scheduled[at])
    if template is None or not packed.nodes or not pods:
        return None
    # Upstream's number of nodes is the whole group then, though some may be there already.
    count = group.max_size if is_zero_or_max(group) else packed.nodes
    return Option(group, template, count, pods, similar)


def pods_left(verdicts: list[Verdict]) -> list[Verdict]:
    """Return the verdicts on pods that no group accepts."""
    return [verdict for verdict in verdicts if not verdict.accepted]
