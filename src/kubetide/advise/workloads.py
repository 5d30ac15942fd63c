"""The workload of a pod: its topmost known controller, also for a deleted pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kubetide.objects.meta import ObjectMeta, controller_of
from kubetide.objects.pod import Pod


class WorkloadKey(NamedTuple):
    """A controller of pods, or a pod without one."""

    namespace: str
    kind: str
    name: str


class Workloads:
    """Controllers and pods of a cluster.

    Attributes:
        pods: Those that have not ended, by workload.
    """

    def __init__(
        self, controllers: Iterable[tuple[str, ObjectMeta]], pods: Iterable[Pod], namespace: str = ""
    ) -> None:
        """Args: the present objects.

        Args:
            controllers: Each with its kind.
            namespace: Only this one; empty for all.
        """
        self._namespace = namespace
        self._owners: dict[WorkloadKey, WorkloadKey | None] = {}
        self._by_name: dict[tuple[str, str], WorkloadKey] = {}
        for kind, meta in controllers:
            key = WorkloadKey(meta.namespace, kind, meta.name)
            owner = controller_of(meta)
            self._owners[key] = WorkloadKey(meta.namespace, owner.kind, owner.name) if owner else None
            # Of controllers of one name, the one whose pods are called by it alone.
            if kind not in {"Deployment", "CronJob"}:
                self._by_name[key.namespace, key.name] = key
        self._of_pods: dict[tuple[str, str], WorkloadKey] = {}
        self.pods: dict[WorkloadKey, list[Pod]] = {}
        for pod in pods:
            meta = pod.metadata
            key = self._top_of(meta)
            self._of_pods[meta.namespace, meta.name] = key
            if namespace in {"", meta.namespace} and pod.status.phase not in {"Succeeded", "Failed"}:
                self.pods.setdefault(key, []).append(pod)

    def of(self, namespace: str, pod: str) -> WorkloadKey | None:
        """Return the workload of a pod.

        A pod that is gone is known by its name, which begins with that of its controller; None where nothing fits.
        """
        if self._namespace not in {"", namespace}:
            return None
        found = self._of_pods.get((namespace, pod))
        if found is not None:
            return found
        direct = self._by_name.get((namespace, pod.rpartition("-")[0]))
        return None if direct is None else self._climbed(direct)

    def _top_of(self, meta: ObjectMeta) -> WorkloadKey:
        owner = controller_of(meta)
        if owner is None or owner.kind == "Node":
            return WorkloadKey(meta.namespace, "Pod", meta.name)
        return self._climbed(WorkloadKey(meta.namespace, owner.kind, owner.name))

    def _climbed(self, key: WorkloadKey) -> WorkloadKey:
        seen = {key}
        while (owner := self._owners.get(key)) is not None and owner not in seen:
            key = owner
            seen.add(key)
        return key
