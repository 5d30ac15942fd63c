"""``kubetide_vertical_recommended_*``: what each VPA recommends, whether or not it was written."""

from __future__ import annotations

import msgspec

from kubetide.explain.records import Record
from kubetide.objects.base import Quantities
from kubetide.objects.vpa import VpaStatus
from kubetide.units.exposition import Registry
from kubetide.units.quantity import Quantity
from kubetide.vertical.recommender.controller import RecommenderController
from kubetide.vertical.recommender.decision import Commands, StatusWrite
from kubetide.vertical.recommender.views import Key

LABELS = ("bound", "container", "namespace", "vpa")
_commands = msgspec.json.Decoder(Commands)
_status = msgspec.json.Decoder(VpaStatus)


class RecommenderSeries:
    """Shows the newest recommendation of each VPA; ``heard`` is to be called with each record of the loop."""

    def __init__(self, registry: Registry, controller: RecommenderController) -> None:
        self._controller = controller
        self._decided: dict[Key, StatusWrite] = {}
        self._cpu = registry.gauge(
            "kubetide_vertical_recommended_cpu_cores",
            "CPU that the VPA recommends for a container: lower, target or upper.",
            LABELS,
        )
        self._memory = registry.gauge(
            "kubetide_vertical_recommended_memory_bytes",
            "Memory that the VPA recommends for a container: lower, target or upper.",
            LABELS,
        )
        self._vpas = registry.gauge("kubetide_vertical_vpas", "VPAs that the recommender takes care of.")
        registry.before_scrape(self._collect)

    def heard(self, record: Record) -> None:
        """Take up the statuses that the pass decided to write."""
        for write in _commands.decode(record.commands).statuses:
            self._decided[write.namespace, write.name] = write

    def _collect(self) -> None:
        vpas = self._controller.state.vpas
        self._decided = {key: write for key, write in self._decided.items() if key in vpas}
        self._vpas.set(len(vpas))
        self._cpu.clear()
        self._memory.clear()
        for key, vpa in vpas.items():
            decided = self._decided.get(key)
            status = vpa.stored.read() if decided is None else _status.decode(decided.status)
            found = status.recommendation and status.recommendation.container_recommendations
            for one in found or ():
                for bound, amounts in (
                    ("lower", one.lower_bound),
                    ("target", one.target),
                    ("upper", one.upper_bound),
                ):
                    self._show(amounts or {}, bound, one.container_name, *key)

    def _show(self, amounts: Quantities, *labels: str) -> None:
        for resource, gauge in (("cpu", self._cpu), ("memory", self._memory)):
            if resource in amounts:
                gauge.set(float(Quantity.parse(amounts[resource])), *labels)
