"""Counts the OOM-killed containers of each service."""

from __future__ import annotations

from collections.abc import Sequence

from kubetide.embedded.load import Service
from kubetide.objects.meta import Key
from kubetide.objects.pod import ContainerStatus, Pod
from kubetide.simulate.outcome.timeline import ServiceSeries


class Kills:
    """Updates ``oom_kills`` of a service's series as its pods change."""

    def __init__(self, services: Sequence[tuple[Service, ServiceSeries]]) -> None:
        self._services = services

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        if old is None or new is None or old.status.container_statuses is new.status.container_statuses:
            return
        killed = [one.name for one in new.status.container_statuses or () if _is_killed(one)]
        if not killed:
            return
        before = {one.name for one in old.status.container_statuses or () if _is_killed(one)}
        count = sum(name not in before for name in killed)
        for service, series in self._services if count else ():
            if service.namespace == key[0] and service.selector.matches(new.metadata.labels or {}):
                series.resources.oom_kills += count
                return


def _is_killed(status: ContainerStatus) -> bool:
    ended = status.state.terminated if status.state is not None else None
    return ended is not None and ended.reason == "OOMKilled"
