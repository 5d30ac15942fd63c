"""How long pods wait for a node: from the creation of each to its binding."""

from __future__ import annotations

from kubetide.nodes.facts.pods import is_daemon_set_pod
from kubetide.objects.meta import Key
from kubetide.objects.pod import Pod, is_finished
from kubetide.ports.clock import Clock
from kubetide.simulate.outcome.timeline import Timeline
from kubetide.units.time import Duration, to_seconds


class PodWaits:
    """Follows the pods into ``waits`` and ``waiting_since`` of a timeline.

    Pods of DaemonSets and pods that are created on a node do not count: no node is bought for them.
    """

    def __init__(self, timeline: Timeline, clock: Clock) -> None:
        self._line = timeline
        self._clock = clock

    def begin(self) -> None:
        """Forget all waits so far: no loop ran that could have ended one."""
        self._line.waits.clear()
        self._line.waiting_since = dict.fromkeys(self._line.waiting_since, self._clock.now())

    def pod_changed(self, key: Key, old: Pod | None, new: Pod | None) -> None:
        """Note that the pod waits, is bound, or is gone."""
        waiting = self._line.waiting_since
        name = "/".join(key)
        if old is None and new is not None and _waits(new) and not is_daemon_set_pod(new):
            waiting[name] = self._clock.now()
        elif name in waiting and (new is None or not _waits(new)):
            since = waiting.pop(name)
            if new is not None and new.spec.node_name:
                self._line.waits.append(to_seconds(Duration(self._clock.now() - since)))


def _waits(pod: Pod) -> bool:
    return not pod.spec.node_name and not is_finished(pod) and not pod.metadata.deletion_timestamp
