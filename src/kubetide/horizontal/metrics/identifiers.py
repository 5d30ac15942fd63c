"""The identifier of a custom or external metric: its query, and its text form."""

from __future__ import annotations

from typing import NamedTuple

from kubetide.horizontal.metrics.types import Arithmetic, Metric
from kubetide.objects.hpa import MetricIdentifier, MetricValueStatus
from kubetide.objects.meta import LabelSelector
from kubetide.units.quantity import Quantity, QuantityError, milli_to_text
from kubetide.units.selectors import Selector, SelectorError


class Asked(NamedTuple):
    """The text form of a metric's selector, or why it cannot be read."""

    selector: str
    problem: str


def asked_for(identifier: MetricIdentifier) -> Asked:
    """Return the text form of a metric's selector, or the error of reading it.

    No selector asks for everything, as an empty one does: in the library's terms it matches nothing,
    but both print as an empty text. Source: horizontal controller v1.36.
    """
    try:
        return Asked(str(Selector.from_object(identifier.selector)), "")
    except SelectorError as error:
        return Asked("", str(error))


def target_milli(field: str, name: str, value: str | float | None) -> tuple[int | None, str]:
    """Return a target in thousandths, or the error of reading it; None without one."""
    if value is None:
        return None, ""
    try:
        return Quantity.parse(value).milli_value(), ""
    except QuantityError as error:
        return None, f"target.{field} of {name}: {error}"


def value_status(metric: Metric, numbers: Arithmetic) -> MetricValueStatus:
    """Return the current value as the status shows it, in the terms of the target."""
    text = milli_to_text(numbers.average)
    if metric.average_milli is not None:
        return MetricValueStatus(average_value=text)
    return MetricValueStatus(value=text)


def printed(selector: LabelSelector | None) -> str:
    """Return a selector as Go's ``%+v`` prints it, as upstream's conditions show it."""
    if selector is None:
        return "nil"
    labels = "".join(f"{key}: {value}," for key, value in sorted((selector.match_labels or {}).items()))
    terms = "".join(
        f"LabelSelectorRequirement{{Key:{term.key},Operator:{term.operator},Values:[{' '.join(term.values or ())}],}},"
        for term in selector.match_expressions or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{labels}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{terms}}},}}"
    )
