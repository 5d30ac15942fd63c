"""The answer about a VPA in one line: what it recommends, what holds that back, and until when."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kubetide.explain.reasons import Reason
from kubetide.units.quantity import readable

ReasonsByContainer = Mapping[str, Sequence[Reason]]
"""Why each container's recommendation is what it is."""

_HOLDING: Final[Mapping[str, str]] = {
    "MinimumApplied": "the pod's minimum raises {what} from {before} to {least}",
    "OomFloor": "an OOM kill at {at} raises {what} from {before} to {least} until {until}",
    "RolledBack": "a rollback at {at} raises {what} from {before} to {least} until {until}",
    "FittedToNodes": "the size of a new node lowers {what} from {before} to {after}",
    "CappedToMinimum": "minAllowed raises {what} from {before} to {bound_amount}",
    "CappedToMaximum": "the allowed maximum lowers {what} from {before} to {bound_amount}",
}
"""What makes another target of the usage that was measured."""


def headline(containers: ReasonsByContainer, problem: str, use: Sequence[str]) -> str:
    """Return the answer in one line.

    Args:
        containers: Reasons of each container of the VPA's pods; empty if there is none.
        problem: Why nothing is recommended at all; empty if something may be.
        use: Why pods do not get what is recommended, a sentence each.
    """
    amounts = [f"{text} for {name}" for name, reasons in containers.items() if (text := _amounts(reasons))]
    holds = [hold for name, reasons in containers.items() for hold in _holds(name, reasons)]
    nothing = "its policies control no resource" if containers else "no pods match it"
    if not problem and any(one.code == "SizesUnknown" for reasons in containers.values() for one in reasons):
        first = "Its recommendation stays as it is: targets must fit new nodes, and what they have left is not known yet."
    elif problem or not amounts:
        first = f"It recommends nothing: {problem or _joined(holds) or nothing}."
    else:
        first = f"It recommends {_joined(amounts)}: {_joined(holds) or 'nothing holds it back'}."
    return " ".join((first, *(f"{one[0].upper()}{one[1:]}." for one in use)))


def _amounts(reasons: Sequence[Reason]) -> str:
    """Return the targets of a container, as ``cpu 323m and memory 250Mi``; empty for none."""
    found = (one.fields for one in reasons if one.code == "Recommended")
    return " and ".join(f"{fields['resource']} {readable(str(fields['target']))}" for fields in found)


def _holds(container: str, reasons: Sequence[Reason]) -> Iterator[str]:
    """Yield what makes another target, or none, of a container's usage."""
    # Without usage the minimum stands in for it, which the first hold says for both resources.
    unused = any(one.code == "NoSamples" for one in reasons)
    for reason in reasons:
        if unused and reason.code == "MinimumApplied":
            continue
        fields = reason.fields
        what = f"{fields.get('resource', '')} of {container}"
        if reason.code == "ContainerOff":
            yield f"the policy of {container} is Off"
        elif reason.code == "NoSamples":
            yield f"{container} has no sample of usage yet, so the pod's minimum stands in"
        elif reason.code == "SamplesAwaited":
            yield f"{container} has no sample of usage yet, and gets no recommendation before the first"
        elif reason.code == "RecommendationKept":
            yield f"{container} has no sample of usage yet, so its recommendation stays as it is"
        elif reason.code == "LeftToHpa":
            yield f"{what} is left to HorizontalPodAutoscaler {fields['hpa']}"
        elif reason.code in _HOLDING and fields.get("bound") == "target":
            shown = {name: readable(str(value)) for name, value in fields.items()}
            yield _HOLDING[reason.code].format(what=what, **shown)


def _joined(parts: Sequence[str]) -> str:
    return ", and ".join(parts)
