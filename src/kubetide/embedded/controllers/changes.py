"""Which changes of an object a controller must act on: those that are not its own status coming back."""

from __future__ import annotations

from kubetide.objects.workload import DaemonSet, Deployment, ReplicaSet, WorkloadStatus


def asks_the_same(
    old: Deployment | ReplicaSet | DaemonSet | None, new: Deployment | ReplicaSet | DaemonSet
) -> bool:
    """Return whether nothing but the status differs: what is asked for, and by whom, is as it was."""
    if old is None:
        return False
    before, now = old.metadata, new.metadata
    return (
        before.uid == now.uid
        and before.generation == now.generation
        # Servers count the generation up with every change of the spec; those that do not say 0.
        and (now.generation != 0 or old.spec == new.spec)
        and before.deletion_timestamp == now.deletion_timestamp
        and before.labels == now.labels
        and before.annotations == now.annotations
        and before.owner_references == now.owner_references
    )


class KnownStatuses:
    """The status that each object's last sync worked out, by uid.

    An event that brings just this status, and nothing else that is new, asks for no sync: if an
    input of the status had changed since, that change would have asked for one itself.
    """

    def __init__(self) -> None:
        self._known: dict[str, WorkloadStatus] = {}

    def note(self, uid: str, status: WorkloadStatus) -> None:
        """Note the outcome of a sync, before it is written."""
        self._known[uid] = status

    def forget(self, uid: str) -> None:
        """Drop an object that is gone."""
        self._known.pop(uid, None)

    def is_echo(self, old: Deployment | ReplicaSet | None, new: Deployment | ReplicaSet) -> bool:
        """Return whether an event says nothing that the last sync did not know."""
        return asks_the_same(old, new) and self._known.get(new.metadata.uid) == new.status
