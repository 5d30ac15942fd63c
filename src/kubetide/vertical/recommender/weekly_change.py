"""What a week has changed about a VPA's targets, for ``explain``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kubetide.explain.algorithm import StepCore
from kubetide.explain.reasons import Reason
from kubetide.loop import WEEK, Past
from kubetide.units.quantity import Quantity, QuantityError, readable
from kubetide.units.time import Instant, format_rfc3339
from kubetide.vertical.recommender.reasons import reasons_of
from kubetide.vertical.recommender.state import State

_ContainerResource = tuple[str, str]
"""Container and resource."""


def since_last_week(core: StepCore[State], subject: str, now: Instant, past: Past) -> str:
    """Return how the targets of a VPA differ from those of a week ago, a sentence; empty where nothing is known of then.

    Args:
        past: What was said of it, from a week ago back; of records that begin later, from their beginning on.
    """
    namespace, _, name = subject.partition("/")
    vpa = core.state.vpas.get((namespace, name))
    if vpa is None:
        return ""
    targets = {
        (container, resource): target
        for container, _ in core.state.cells_of(vpa)
        for resource, target in _targets(reasons_of(core.state, vpa, container))
    }
    before: dict[_ContainerResource, str] = {}
    begun: Instant | None = None
    for at, reasons in past:
        for reason in reasons:
            container = reason.subject.removeprefix(f"{subject}/")
            for resource, target in _targets((reason,)):
                before.setdefault((container, resource), target)
                begun = at if begun is None else begun
        if targets.keys() <= before.keys():
            break
    if begun is None or begun == now or not targets:
        return ""
    since = "a week ago" if now - begun >= WEEK else f"{format_rfc3339(begun)}, the first in the records"
    changes = [
        change for place, target in targets.items() if (change := _change(place, before.get(place), target))
    ]
    return f"Since {since}: {', '.join(changes) or 'no target has changed'}."


def _targets(reasons: Sequence[Reason]) -> Iterator[tuple[str, str]]:
    """Yield resource and target of those reasons that name a target."""
    for one in reasons:
        if one.code == "Recommended":
            yield str(one.fields["resource"]), str(one.fields["target"])


def _change(place: _ContainerResource, before: str | None, after: str) -> str:
    """Return how a target has changed; empty where it reads as it did."""
    container, resource = place
    if before is None:
        return f"{resource} of {container} is new"
    if readable(before) == readable(after):
        return ""
    return f"{resource} of {container} from {readable(before)} to {readable(after)}{_share(before, after)}"


def _share(before: str, after: str) -> str:
    try:
        old, new = Quantity.parse(before).milli_value(), Quantity.parse(after).milli_value()
    except QuantityError:
        return ""
    return f" ({(new - old) / old:+.0%})" if old else ""
