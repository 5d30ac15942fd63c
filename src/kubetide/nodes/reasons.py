"""The closed vocabulary of the node loop: why a group, a pod or a node is treated as it is.

Where upstream has a word for it (skip reasons, unremovable reasons, results), the code is that word,
or the constant below that holds its text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from kubetide.explain.reasons import Reason, Vocabulary

# Upstream's texts for why a group is not offered; they are counted in the event of a pod.
BACKED_OFF: Final = "in backoff after failed scale-up"
MAX_SIZE_REACHED: Final = "max node group size reached"
NOT_READY: Final = "not ready for scale-up"
ATOMIC_OVER_MAX_TOTAL: Final = "atomic scale-up exceeds cluster node count limit"
NO_GROUPS: Final = "the cloud has no node groups; check what names or finds them, such as --nodes and --node-group-auto-discovery"
FILTERED_OUT: Final = "expansion options filtered out and no longer considered"
ALL_OR_NOTHING: Final = "not all pods would fit and scale-up is using all-or-nothing strategy"
OUT_OF_STOCK: Final = "out of stock lately: its instance type in its zone and market"
NO_PRICE: Final = "no price per hour is known of the group, and the expander least-cost compares prices"
TOO_MANY_GROUPS: Final = "more groups would be created than --max-autoprovisioned-node-group-count allows"
USELESS: Final = "in backoff: nodes of the group joined and left these pods pending"


def quota_exceeded(quota: str, resources: tuple[str, ...]) -> str:
    """Return upstream's text for a limit that an increase would exceed."""
    return f'exceeded quota: "{quota}", resources: {", ".join(resources)}'


def exceeded_resources(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the resources that texts of ``quota_exceeded`` name, each once; none for other texts."""
    found: dict[str, None] = {}
    for text in texts:
        known, _, resources = text.partition(", resources: ")
        if known.startswith("exceeded quota: "):
            found.update(dict.fromkeys(resources.split(", ")))
    return tuple(found)


SCALE_UP = {
    "NoDemand": "no pod is without a place",
    "PodsFitExisting": "existing or upcoming nodes have capacity for {pods:pod}",
    "ExpanderAnswered": "the expander grpc was asked about {options:option} and prefers {groups}",
    "ExpanderDeclined": "the expander grpc was asked about {options:option} and prefers none: no group is chosen",
    "ExpanderSilent": "the expander grpc was asked about {options:option} in vain, all of them stay: {why}",
    "SalvoGoesOn": "{pods:pod} left after the last increase: another one is looked for in the same loop",
    "PodsTooNew": "{pods:pod} younger than the scale-up delay: waiting for more",
    "PodsLeftOut": "{pods:pod} not looked at in this loop: the time for it, --pending-pods-batching-timeout, was over",
    "ScaleUpLeftOut": "{loops} loops in a row left pods out for lack of time: this one only looks at what may go",
    "MaxNodesTotal": "the cluster has {nodes:node}, the limit is {limit}",
    "ClusterUnhealthy": "{unready} of {nodes} nodes are unready: nothing is changed",
    "ScaleUpCapReached": "{used:node} asked for within an hour, the cap is {limit}",
    "GroupSkipped": "group {subject} is left out: {why}",
    "GroupRefuses": "group {subject} cannot hold {pod}: {why}",
    "CandidateGroups": "{groups:group} that the cloud could create were considered beside those that there are",
    "NoCandidateGroups": "no group is considered that could be created: {why}",
    "Option": "group {subject} would hold {pods:pod} on {nodes:new node}",
    "EstimateCut": "group {subject} was asked for no node more: the time for it, --max-nodegroup-binpacking-duration={limit}, was over",
    "PackingCut": "{groups:group} were not asked for options: the time for it, --max-binpacking-time={limit}, was over",
    "Chosen": "group {subject} is chosen by {expander}: {nodes:node} for {pods:pod}",
    "PrioritiesIgnored": "group {subject}: the expander priority left all groups: {why}",
    "ExpanderFailed": "group {subject}: the expander {expander} failed and left all groups: {why}",
    "NoneRated": "no group is chosen: {expander} can rate none of {options:option}, as none of their groups has a price",
    "NoneLeft": "no group is chosen: the expander {expander} leaves none of {options:option}",
    "ChosenTogether": "it is part of {nodes:node} of {groups:group} for {price} an hour; the same pods cost at least {bound} ({by}), so it costs at most {gap} too much",
    "SearchCut": "the search for cheaper nodes ended at its budget of work, with the best so far: {price} an hour, at most {gap} above the least possible",
    "LeftForLater": "{pods:pod} are left for a later tick: the limits, or the other pods of this choice, leave no node for them",
    "Capped": "group {subject}: {requested:node} cut to {nodes} by {limit}",
    "GroupCreated": "group {subject} was created, of {type}, for up to {max:node}: {pods:pod} asked for it",
    "GroupNotCreated": "group {subject}, of {type}, could not be created: {error}",
    "GroupCreationAdvised": "group {subject} would be created, of {type}, for up to {max:node}",
    "IncreaseRefused": "group {subject} could not be increased by {delta}: {error}",
    "Increased": "group {subject} was increased from {size} to {to}",
    "IncreaseAdvised": "group {subject} would be increased from {size} to {to}",
    "OutOfStock": "{subject} is out of stock, as group {group} has found: until {until} groups with other machines are preferred",
    "BackoffStarted": "group {subject} is left out for {duration} after {error}",
    "MachineLate": "group {subject}: {why}; nobody waits for it any longer",
    "ScaleUpRecovered": "group {subject}: {nodes:node} on the way at the start, as an earlier process asked for them",
    "UpcomingNodes": "group {subject}: {nodes:node} on the way",
    "TemplateLearned": "group {subject}: the template is that of live node {node}",
    "TemplateDiffers": "group {subject}: {resource} is {seen} on live node {node}, the cloud said {said}",
    "PodsNominated": "{pods:pod} planned for a new node of group {group} are nominated to node {subject}, and its nomination taint is removed",
    "NodeJoined": "group {subject}: node {node} was ready {took} after it was created",
    "TemplateMissed": "group {subject}: {resource} is {seen} on new node {node}, the template promised {promised} ({source})",
    "GroupNotice": "group {subject}: {why}",
    "IntentDemand": "{subject}: {missing:replica} that {source} wants and that do not exist yet",
    "ReplacementDemand": "{subject}: {pods:pod} are to be replaced by larger ones, for which their nodes have no capacity",
    "BufferDemand": "CapacityBuffer {subject}: capacity is reserved for {pods:pod}, {missing} of them have none yet",
    "PodsOfRequests": "{pods:pod} without a place consume ProvisioningRequests, and buy nothing themselves",
    "RequestBooked": "ProvisioningRequest {subject}: {why}; capacity for its {pods:pod} is booked until {until}",
    "RequestWaits": "ProvisioningRequest {subject}: {why} It waits {wait} before it is tried again",
    "RequestFailed": "ProvisioningRequest {subject} has failed: {why}",
    "RequestOver": "ProvisioningRequest {subject}: {why}; no capacity is reserved for it any longer",
    "RequestNotBuyable": "ProvisioningRequest {subject}: no group takes all of its {pods:pod} that fit nowhere, and a part is not bought",
    "LeftPending": "group {subject}: {nodes:node} joined and left {pods:pod} pending",
    "UnregisteredRemoved": "group {subject}: instance {instance} never registered and is deleted",
    "UnregisteredNotRemoved": "group {subject}: instance {instance} never registered and could not be deleted: {error}",
    "UnregisteredRemovalAdvised": "group {subject}: instance {instance} never registered and would be deleted",
    "FailedInstance": "group {subject}: {instances:instance} could not be made: {error}",
    "SizeFixed": "group {subject}: target lowered by {delta}, the nodes never came",
    "SizeNotFixed": "group {subject}: target could not be lowered by {delta}, though the nodes never came: {error}",
    "SizeFixAdvised": "group {subject}: target would be lowered by {delta}, the nodes never came",
    "BelowMinSize": "group {subject}: raised from {size} to its minimum {minimum}",
}

SCALE_DOWN = {
    "ScaleDownHeld": "scale-down holds: {why}",
    "ScaleDownDisabled": "scale-down is switched off",
    "ScaleDownInCooldown": "scale-down waits: {why}",
    "NodeUnneeded": "node {subject} is unneeded: its pods fit on other nodes",
    "SimulationCut": "{nodes:node} were not tried for removal: the time for it, --scale-down-simulation-timeout={limit}, was over",
    "NodeStays": "node {subject} stays, {why}: {detail}",
    "NodeBlockedByPod": "node {subject} stays: pod {pod} keeps it, {why}: {detail}",
    "EmptyNodeChosen": "node {subject} of group {group} goes: empty and unneeded for {unneeded}",
    "NodeChosen": "node {subject} of group {group} goes: unneeded for {unneeded}, utilization {utilization}, {pods:pod} to be moved",
    "RemovalAdvised": "node {subject} of group {group} would go: {why}",
    "IdleNodeChosen": "node {subject} of group {group} goes: empty for {idle}, and no pod is expected that would need it",
    "ConsolidationChosen": "node {subject} is consolidated: {why}",
    "ConsolidationBegun": "node {subject} of group {group} goes by consolidation: {pods:pod} to be moved",
    "ConsolidationGivenUp": "node {subject} is not consolidated after all: {why}",
    "NodeDeleted": "node {subject} of group {group} was deleted",
    "GroupDeleted": "group {subject}, which this program created, was deleted: empty since {since}",
    "GroupNotDeleted": "group {subject}, which this program created and which is empty since {since}, could not be deleted: {error}",
    "GroupDeletionAdvised": "group {subject}, which this program created, would be deleted: empty since {since}",
    "DeletionFailed": "node {subject} could not be removed, {why}: {error}",
}

ACTIONS = (
    "GroupCreated",
    "GroupNotCreated",
    "GroupCreationAdvised",
    "GroupDeleted",
    "GroupNotDeleted",
    "GroupDeletionAdvised",
    "IncreaseRefused",
    "Increased",
    "IncreaseAdvised",
    "UnregisteredRemoved",
    "UnregisteredNotRemoved",
    "UnregisteredRemovalAdvised",
    "FailedInstance",
    "SizeFixed",
    "SizeNotFixed",
    "SizeFixAdvised",
    "EmptyNodeChosen",
    "NodeChosen",
    "IdleNodeChosen",
    "ConsolidationChosen",
    "ConsolidationBegun",
    "ConsolidationGivenUp",
    "RemovalAdvised",
    "NodeDeleted",
    "DeletionFailed",
)
"""What is done or befalls; all other codes say why."""


def _telling(reasons: Sequence[Reason]) -> list[Reason]:
    """Leave out, of the reasons for a purchase, which other pods its group does not take."""
    bought = any(one.code == "Chosen" for one in reasons)
    return [one for one in reasons if not (bought and one.code == "GroupRefuses")]


VOCABULARY = Vocabulary(
    {**SCALE_UP, **SCALE_DOWN},
    actions=ACTIONS,
    fruitless=(
        "GroupNotCreated",
        "GroupCreationAdvised",
        "GroupNotDeleted",
        "GroupDeletionAdvised",
        "IncreaseAdvised",
        "IncreaseRefused",
        "RemovalAdvised",
        "DeletionFailed",
        "UnregisteredNotRemoved",
        "UnregisteredRemovalAdvised",
        "SizeNotFixed",
        "SizeFixAdvised",
        "ConsolidationGivenUp",
    ),
    changes={"Increased": ("size", "to"), "IncreaseAdvised": ("size", "to"), "NodeDeleted": -1},
    # A tick records only what is new since the one before.
    alternatives={"Increased": ("GroupSkipped", "GroupRefuses")},
    telling=_telling,
)
reason = VOCABULARY.reason


def worded_as_advice(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    """Return the reasons without removals that the same step only advises."""
    given = tuple(reasons)
    advised = {one.subject for one in given if one.code == "RemovalAdvised"}
    if not advised:
        return given
    return tuple(
        one
        for one in given
        if one.code not in {"EmptyNodeChosen", "NodeChosen", "IdleNodeChosen"} or one.subject not in advised
    )
