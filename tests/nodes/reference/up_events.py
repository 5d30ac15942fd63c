"""What pods hear of an attempt to scale up."""

from __future__ import annotations

from tests.nodes.reference import events
from tests.nodes.reference.up_status import Remaining, UpStatus
from tests.nodes.reference.world import World

ATTEMPTED = ("ScaleUpSuccessful", "ScaleUpError")


def tell_pods(world: World, up: UpStatus) -> None:
    """Tell the pods of an attempt to scale up what became of it.

    Those that no group can help hear of it only if nothing was tried for any pod.
    """
    if up.result not in ATTEMPTED:
        for one in up.remaining:
            words = f"pod didn't trigger scale-up: {_reasons(world, up, one)}"
            events.on_pod(world, one.pod, "NotTriggerScaleUp", words)
    if not up.infos:
        return
    groups = " ".join(f"{{{one.group} {one.current}->{one.new} (max: {one.max})}}" for one in up.infos)
    for pod in up.triggered:
        events.on_pod(world, pod, "TriggeredScaleUp", f"pod triggered scale-up: [{groups}]")


def _reasons(world: World, up: UpStatus, one: Remaining) -> str:
    """Return how many groups have which reason; of groups that exist and were considered."""
    if up.result == "ScaleUpLimitedByMaxNodesTotal":
        return "max total nodes in cluster reached"
    counts: dict[str, int] = {}
    for by_group in (one.rejected, one.skipped):
        for group, reasons in by_group.items():
            if group in up.considered and world.groups[group].exists:
                for reason in reasons:
                    counts[reason] = counts.get(reason, 0) + 1
    return ", ".join(f"{count} {reason}" for reason, count in counts.items())
