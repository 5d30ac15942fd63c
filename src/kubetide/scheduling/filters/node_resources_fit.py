"""NodeResourcesFit: the node must have the pod's requests free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import ColumnKey, Need, PodClass
from kubetide.scheduling.pods.resources import PODS
from kubetide.scheduling.refusal import ERROR, UNRESOLVABLE, UNSCHEDULABLE, Refusal, Shortfall
from kubetide.units.vectors import BoolVector

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

    def needs(self, pod: PodClass, rows: Rows) -> Sequence[Need]:
        delegated = _delegated(pod, rows)
        return [need for need in pod.needs if need.key not in delegated] if delegated else pod.needs

    def judge(self, pod: PodClass, rows: Rows) -> _Judge | None:
        delegated = _delegated(pod, rows)
        return _Judge([need for need in pod.needs if need.key in delegated], rows) if delegated else None

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        delegated = _delegated(pod, rows)
        numbers: list[Shortfall] = []
        for name, amount in pod.needs:
            free = rows.free_of(name, row)
            if amount > free:
                allocatable = rows.allocatable_of(name, row)
                if allocatable > 0 or name not in delegated:
                    numbers.append(Shortfall(str(name), amount, free, allocatable))
        if not numbers:
            return None
        reasons = tuple(_reason(short.resource) for short in numbers)
        hopeless = any(short.requested > short.allocatable for short in numbers if short.resource != PODS)
        code = UNRESOLVABLE if hopeless else UNSCHEDULABLE
        return Refusal(plugin=self.name, reasons=reasons, code=code, numbers=tuple(numbers))

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        delegated = _delegated(pod, rows)
        found: list[tuple[str, BoolVector]] = []
        for need in pod.needs:
            enough = _enough(need, rows, or_none=need.key in delegated)
            found.append((_reason(str(need.key)), ~enough))
        return found

    def unresolvable(self, pod: PodClass, rows: Rows) -> BoolVector:
        """Return the nodes that would be too small without any pod."""
        delegated = _delegated(pod, rows)
        found = np.zeros(rows.n, np.bool_)
        for need in pod.needs:
            if need.key == PODS:
                continue
            column = rows.columns.get(need.key)
            if column is None:
                found |= need.key not in delegated
                continue
            allocatable = column.allocatable[: rows.n]
            too_small = allocatable < need.minimum
            found |= too_small & (allocatable > 0) if need.key in delegated else too_small
        return found


class _Judge:
    """Extended resources that a device class stands for: evaluated here on the nodes that offer them all the same."""

    only_tightens = True
    takes_in_copies = True
    terms = None

    def __init__(self, needs: list[Need], rows: Rows) -> None:
        self._needs = needs
        self._rows = rows

    def nodes(self) -> BoolVector:
        passes = np.ones(self._rows.n, np.bool_)
        for need in self._needs:
            passes &= _enough(need, self._rows, or_none=True)
        return passes

    def node(self, row: int) -> bool:
        rows = self._rows
        return all(
            rows.allocatable_of(name, row) <= 0 or rows.free_of(name, row) >= amount
            for name, amount in self._needs
        )


def _delegated(pod: PodClass, rows: Rows) -> dict[ColumnKey, None]:
    """The extended resources that devices stand for where a node does not offer them itself."""
    ledger = rows.devices
    if ledger is None or pod.devices is None:
        return {}
    return {name: None for name, _ in pod.devices.extended if ledger.class_of(name) is not None}


def _enough(need: Need, rows: Rows, *, or_none: bool) -> BoolVector:
    column = rows.columns.get(need.key)
    if column is None:
        return np.full(rows.n, or_none, np.bool_)
    enough: BoolVector = column.free[: rows.n] >= need.minimum
    return enough | (column.allocatable[: rows.n] <= 0) if or_none else enough


def _reason(resource: str) -> str:
    return TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"
