"""NodePorts: two pods on a node cannot have the same host port."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from kubetide.scheduling.columns.rows import Rows
from kubetide.scheduling.pods.pod_class import ANY_IP, Need, PodClass, Port
from kubetide.scheduling.refusal import UNSCHEDULABLE, Refusal
from kubetide.units.vectors import BoolVector

REASON = "node(s) didn't have free ports for the requested pod ports"


def collide(one: Port, other: Port) -> bool:
    """Return whether two ports conflict: 0.0.0.0 is every address, others are compared as text."""
    if (one.protocol, one.port) != (other.protocol, other.port):
        return False
    return one.ip == other.ip or ANY_IP in {one.ip, other.ip}


class NodePorts:
    """Source: kube-scheduler v1.36 NodePorts. A port's column counts down from 0 with each use."""

    name = "NodePorts"

    def needs(self, pod: PodClass, rows: Rows) -> list[Need]:
        return [Need(used, 0) for used in self._collisions(pod, rows)]

    def refuse(self, pod: PodClass, rows: Rows, row: int) -> Refusal | None:
        for used in self._collisions(pod, rows):
            if rows.free_of(used, row) < 0:
                detail = f"{used.protocol} {used.ip}:{used.port} is in use"
                return Refusal(plugin=self.name, reasons=(REASON,), code=UNSCHEDULABLE, detail=detail)
        return None

    def failures(self, pod: PodClass, rows: Rows) -> list[tuple[str, BoolVector]]:
        taken = np.zeros(rows.n, np.bool_)
        for used in self._collisions(pod, rows):
            taken |= rows.columns[used].free[: rows.n] < 0
        return [(REASON, taken)] if pod.ports else []

    @staticmethod
    def _collisions(pod: PodClass, rows: Rows) -> Iterator[Port]:
        for port in pod.ports:
            for used in rows.ports.get((port.protocol, port.port), ()):
                if collide(port, used):
                    yield used
