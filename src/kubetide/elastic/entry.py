"""The entry of ElasticWorkloads for the rest of the program: a loop that writes conditions, and views for other loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, cast

from kubetide.elastic.controller.controller import ElasticController
from kubetide.elastic.controller.owning import Sections
from kubetide.elastic.controller.shown import ShownCaches, ShownCluster, ShownOwners
from kubetide.elastic.core import ALGORITHM
from kubetide.elastic.outlook import lines, names
from kubetide.elastic.reasons import VOCABULARY
from kubetide.elastic.roles import ELASTIC
from kubetide.loop import NO_FLAGS, Explainer, LoopEntry, Parts
from kubetide.objects.kinds import ELASTIC_WORKLOADS, HPAS, VPAS
from kubetide.ports.cluster import Cluster


def _view(loop: ElasticController, parts: Parts) -> Parts:
    """Return parts in which sections stand among HPAs and VPAs."""
    sections = Sections(parts.cluster, parts.caches, loop.workloads)
    shown = sections.shown
    return replace(
        parts,
        cluster=cast("Cluster", ShownCluster(loop.cluster, shown, sections)),
        caches=ShownCaches(parts.cluster, parts.clock, parts.caches, shown, sections),
        owners=None if parts.owners is None else ShownOwners(parts.owners, shown),
    )


ENTRY: Final[LoopEntry[Any]] = LoopEntry(
    name="elastic",
    flags=NO_FLAGS,
    make=ElasticController,
    core=ALGORITHM.core,
    vocabulary=VOCABULARY,
    roles=(ELASTIC,),
    explainers=(Explainer("elasticworkload", lines, names, namespaced=True),),
    optional_kinds=(ELASTIC_WORKLOADS, HPAS, VPAS),
    view=_view,
)
