"""NodeResourcesFit: what the pod asks for must be left on the node."""

from __future__ import annotations

import numpy as np

from kubetide.scheduling.filters.base import Need
from kubetide.scheduling.pod_class import PodClass
from kubetide.scheduling.refusal import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Refusal, Shortfall
from kubetide.scheduling.resources import PODS
from kubetide.scheduling.rows import BoolVector, Rows

TOO_MANY_PODS = "Too many pods"


class NodeResourcesFit:
    """Source: kube-scheduler v1.36 NodeResourcesFit.

    A resource is looked at only when more than 0 is asked for, so that an over-committed node still
    takes pods without requests. Reasons: pods, then the order of ``PodClass.requests``.
    """

    name = "NodeResourcesFit"

    def everywhere(self, pod: PodClass, rows: Rows) -> Refusal | None:  # noqa: ARG002  # the protocol's form
        if not pod.error:
            return None
        return Refusal(
            plugin=self.name, reasons=(pod.error,), code=ERROR, phase="PreFilter", detail=pod.error
        )

    def needs(self, pod: PodClass, rows: Rows) -> list[Need]:  # noqa: ARG002  # the protocol's form
        wanted = [Need(name, amount) for name, amount in pod.requests.items() if amount > 0]
        return [Need(PODS, 1), *wanted]

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        numbers: list[Shortfall] = []
        for name, amount in self.needs(pod, rows):
            free = rows.free_of(name, row)
            if amount > free:
                numbers.append(Shortfall(str(name), amount, free, rows.allocatable_of(name, row)))
        if not numbers:
            return None
        reasons = tuple(_reason(short.resource) for short in numbers)
        hopeless = any(short.requested > short.allocatable for short in numbers if short.resource != PODS)
        code = UNRESOLVABLE if hopeless else UNSCHEDULABLE
        return Refusal(plugin=self.name, reasons=reasons, code=code, numbers=tuple(numbers))

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        found: list[tuple[str, BoolVector]] = []
        for name, amount in self.needs(pod, rows):
            column = rows.columns.get(name)
            short = np.ones(rows.n, np.bool_) if column is None else column.free[: rows.n] < amount
            found.append((_reason(str(name)), short))
        return found


def _reason(resource: str) -> str:
    return TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"
