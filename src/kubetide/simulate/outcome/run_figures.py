"""A simulation's own figures besides its loops': each service's load and its outcome, and costs.

They go into the history of figures with the records of one loop, so a dashboard has them while the run goes on, and its
report has them from the same place.
"""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.explain.figures import FigureTable
from kubetide.simulate.outcome.timeline import ServiceSeries, Timeline


class RunFigures:
    """Computes the figures of the steps since the last call.

    Of kind ``run``: ``cpuUsed`` at most, and at the end of the last step ``cpuRequested`` and ``cpuAllocatable`` in cores and
    ``spent``. Of kind ``service``: requests/s ``offered`` at most; ``capacity`` in requests/s, pods ``existing`` and
    ``ready`` and replicas ``desired`` at the end of the last step; ``missed`` is 1 where any step broke the objective;
    ``lost`` are the SLO minutes since the start, ``lostOwnStep`` those at the load's own step.
    """

    def __init__(self) -> None:
        self._seen = 0
        self._names: list[str] = []
        self._lost: list[_LostMinutes] = []
        self._lost_own: list[_LostMinutes] = []

    def of(self, timeline: Timeline) -> tuple[FigureTable, ...]:
        """Return the figures of the steps since the last call; none where there was none."""
        begin, self._seen = self._seen, len(timeline.pending)
        if begin == self._seen:
            return ()
        services = list(timeline.services.values())
        if not self._names:
            self._names = list(timeline.services)
            self._lost = [_LostMinutes() for _ in services]
            self._lost_own = [_LostMinutes() for _ in services]
        run = {
            "cpuUsed": [max(timeline.cpu_used[begin:])],
            "cpuRequested": [timeline.cpu_requested[-1]],
            "cpuAllocatable": [timeline.cpu_allocatable[-1]],
            "spent": [timeline.cost[-1]],
        }
        return (
            FigureTable("run", ("",), run),
            FigureTable("service", self._names, self._columns(services, begin, timeline.step_s)),
        )

    def _columns(
        self, services: Sequence[ServiceSeries], begin: int, step_s: float
    ) -> dict[str, Sequence[float]]:
        return {
            "offered": [max(one.offered[begin:]) for one in services],
            "capacity": [one.capacity[-1] for one in services],
            "existing": [one.existing[-1] for one in services],
            "ready": [one.ready[-1] for one in services],
            "desired": [one.desired[-1] for one in services],
            "missed": [any(one.violated[begin:]) for one in services],
            "lost": [
                lost.after(one.violated, begin, step_s)
                for lost, one in zip(self._lost, services, strict=True)
            ],
            "lostOwnStep": [
                lost.after(one.violated_own_step, begin, step_s)
                for lost, one in zip(self._lost_own, services, strict=True)
            ],
        }


class _LostMinutes:
    """Counts minutes with at least one bad step, as ``timeline.minutes_lost`` does of the whole run."""

    def __init__(self) -> None:
        self._count = 0
        self._minute = -1

    def after(self, bad: Sequence[bool], begin: int, step_s: float) -> int:
        """Return the count after the steps from ``begin`` on."""
        if True not in bad[begin:]:
            return self._count
        for index in range(begin, len(bad)):
            if bad[index] and (minute := int(index * step_s // 60)) != self._minute:
                self._minute = minute
                self._count += 1
        return self._count
