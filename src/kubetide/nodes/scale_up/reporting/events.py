"""Events of scale-up on the status object, with upstream's reasons and messages."""

from __future__ import annotations

from kubetide.nodes.decision import DecreaseTarget, DeleteInstances, EventRecord, IncreaseSize, Outcome
from kubetide.nodes.state import State
from kubetide.units.time import Duration, format_duration


def on_status(state: State, kind: str, reason: str, message: str) -> list[EventRecord]:
    """Return an event on the status ConfigMap as a list; empty if that is switched off."""
    settings = state.settings
    if not settings.write_status_configmap:
        return []
    return [
        EventRecord(
            kind="ConfigMap",
            namespace=settings.namespace,
            name=settings.status_config_map_name,
            type="Warning" if kind == "Warning" else "Normal",
            reason=reason,
            message=message,
        )
    ]


def scaling_up(state: State, action: IncreaseSize) -> list[EventRecord]:
    """Return the event before an increase."""
    message = f"Scale-up: setting group {action.group} size to {action.size + action.delta} instead of {action.size} (max: {action.max_size})"
    return on_status(state, "Normal", "ScaledUpGroup", message)


def scaled_up(state: State, action: IncreaseSize) -> list[EventRecord]:
    """Return the event after an increase."""
    message = f"Scale-up: group {action.group} size set to {action.size + action.delta} instead of {action.size} (max: {action.max_size})"
    return on_status(state, "Normal", "ScaledUpGroup", message)


def failed_to_scale_up(state: State, action: IncreaseSize, outcome: Outcome) -> list[EventRecord]:
    """Return the event after an increase that the cloud refused."""
    message = f"Scale-up failed for group {action.group}: {outcome.error}"
    return on_status(state, "Warning", "FailedToScaleUpGroup", message)


def max_nodes_total(state: State) -> list[EventRecord]:
    message = f"Max total nodes in cluster reached: {state.settings.max_nodes_total}"
    return on_status(state, "Warning", "MaxNodesTotalReached", message)


def cluster_unhealthy(state: State) -> list[EventRecord]:
    return on_status(state, "Warning", "ClusterUnhealthy", "Cluster is unhealthy")


def scale_up_timed_out(state: State, group: str, waited: Duration) -> list[EventRecord]:
    message = f"Nodes added to group {group} failed to register within {format_duration(waited)}"
    return on_status(state, "Warning", "ScaleUpTimedOut", message)


def failed_to_revert(state: State, action: DecreaseTarget, error: str) -> list[EventRecord]:
    message = f"Failed to decrease target size for group {action.group} after scale-up timeout: {error}"
    return on_status(state, "Warning", "FailedToRevertScaleUp", message)


def instances_failed(state: State, group: str, count: int, error: str, messages: str) -> list[EventRecord]:
    message = f"Failed adding {count} nodes to group {group} due to {error}; source errors: {messages}"
    return on_status(state, "Warning", "ScaleUpFailed", message)


def unregistered_deleted(state: State, action: DeleteInstances, outcome: Outcome) -> list[EventRecord]:
    """Return one event per machine that never became a node."""
    found = []
    for provider_id in action.provider_ids:
        if outcome.status == "ok":
            found += on_status(
                state, "Normal", "DeleteUnregistered", f"Removed unregistered node {provider_id}"
            )
        elif outcome.status == "failed":
            message = f"Failed to remove node {provider_id}: {outcome.error}"
            found += on_status(state, "Warning", "DeleteUnregisteredFailed", message)
    return found
