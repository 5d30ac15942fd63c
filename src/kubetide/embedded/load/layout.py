"""Which pods a metrics reader sees in a step, and how their containers lie one after another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from kubetide.embedded.load.rows import PodRows, Shape
from kubetide.objects.pod import Pod
from kubetide.units.selectors import Selector
from kubetide.units.time import Instant
from kubetide.units.vectors import Int64Vector


@dataclass(frozen=True)
class Layout:
    """A set and order of pods.

    Attributes:
        rows: (P,) their rows in the model.
        pods: (P,) as they were when the layout was made; only name, namespace, labels and
            containers may be relied on.
        namespaces, names: (P,), the same objects as long as the set and order stay.
        nodes: (P,) names of their nodes.
        first: (P + 1,) offsets into the container axis.
        containers: (C,) names.
        workers: (P,) container index of each pod's working container.
        idle_nano, idle_memory: (C,) what the containers use that do no work (nano-CPU, bytes).
        some_young: Whether a Running pod is left out because it has not run for a whole step.
        version: That of the rows when the layout was made.
    """

    rows: Int64Vector
    pods: Sequence[Pod]
    namespaces: tuple[str, ...]
    names: tuple[str, ...]
    nodes: tuple[str, ...]
    first: Int64Vector
    containers: tuple[str, ...]
    workers: Int64Vector
    idle_nano: Int64Vector
    idle_memory: Int64Vector
    some_young: bool
    version: int


def lay_out(rows: PodRows, step_start: Instant, previous: Layout | None) -> Layout:
    """Return the layout of the Running pods that had started by ``step_start``; name tuples are reused when equal."""
    visible, some_young = rows.visible(step_start)
    if previous is not None and previous.version == rows.version and np.array_equal(previous.rows, visible):
        return previous if previous.some_young == some_young else replace(previous, some_young=some_young)
    counts = rows.container_count[visible]
    first = np.zeros(len(visible) + 1, np.int64)
    np.cumsum(counts, out=first[1:])
    total = int(first[-1])
    names: list[str] = rows.names[visible].tolist()
    namespaces: list[str] = rows.namespaces[visible].tolist()
    nodes: list[str] = rows.node_names[visible].tolist()
    layout = Layout(
        rows=visible,
        pods=rows.pods[visible].tolist(),
        namespaces=tuple(namespaces),
        names=tuple(names),
        nodes=tuple(nodes),
        first=first,
        containers=tuple(chain.from_iterable(rows.containers[visible].tolist())),
        workers=first[:-1] + rows.worker[visible],
        idle_nano=np.zeros(total, np.int64),
        idle_memory=np.zeros(total, np.int64),
        some_young=some_young,
        version=rows.version,
    )
    # Only pods with sidecars have containers that do no work.
    for index in np.flatnonzero(counts > 1).tolist():
        shape: Shape = rows.shapes[visible[index]]
        layout.idle_nano[first[index] : first[index + 1]] = shape.nano
        layout.idle_memory[first[index] : first[index + 1]] = shape.memory
    if previous is not None and previous.names == layout.names and previous.namespaces == layout.namespaces:
        return replace(layout, names=previous.names, namespaces=previous.namespaces)
    return layout


def chosen(layout: Layout, namespace: str, labels: str) -> list[int]:
    """Return the numbers of the pods of a namespace (empty: of all) with such labels. Raises SelectorError."""
    selector = Selector.parse(labels)
    return [
        number
        for number, pod in enumerate(layout.pods)
        if (not namespace or pod.metadata.namespace == namespace) and selector.matches(pod.metadata.labels)
    ]
