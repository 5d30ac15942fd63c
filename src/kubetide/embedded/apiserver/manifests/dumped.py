"""Objects as ``kubectl get -o yaml`` prints them: what a server has added is taken away.

What remains can be created again. Who owns what, and the uid, stay until all objects are known
(``simulate/scenarios/dumps.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kubetide.objects.base import Json

_METADATA = frozenset(
    {
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "generation",
        "managedFields",
        "resourceVersion",
        "selfLink",
    }
)
_ANNOTATIONS = frozenset(
    {
        "deployment.kubernetes.io/desired-replicas",
        "deployment.kubernetes.io/max-replicas",
        "deployment.kubernetes.io/revision",
        "deprecated.daemonset.template.generation",
        "kubectl.kubernetes.io/last-applied-configuration",
        "pv.kubernetes.io/bind-completed",
        "pv.kubernetes.io/bound-by-controller",
        "volume.beta.kubernetes.io/storage-provisioner",
        "volume.kubernetes.io/selected-node",
        "volume.kubernetes.io/storage-provisioner",
    }
)
_OF_JOBS = frozenset(
    {"batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"}
)
_OVER = frozenset({"Complete", "Failed"})


def is_dumped(value: Any) -> bool:
    """Return whether an object comes from a server and not from a person."""
    metadata = value.get("metadata") if isinstance(value, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("uid") or metadata.get("resourceVersion"))


def is_over(value: Json) -> bool:
    """Return whether an object of a dump would not be there for long: it is being deleted, or has run to its end."""
    status = value.get("status")
    status = status if isinstance(status, dict) else {}
    if (value.get("metadata") or {}).get("deletionTimestamp"):
        return True
    if value.get("kind") == "Pod":
        return status.get("phase") in ("Succeeded", "Failed")
    held = (
        one.get("type")
        for one in status.get("conditions") or ()
        if isinstance(one, dict) and one.get("status") == "True"
    )
    return value.get("kind") == "Job" and not _OVER.isdisjoint(held)


def as_sent(value: Json) -> Json:
    """Return an object of a dump as a person would have sent it, with its ``uid`` and owners still there.

    The status of a ResourceQuota stays: nothing else says what its namespace uses.
    """
    is_quota = value.get("kind") == "ResourceQuota"
    sent = {name: member for name, member in value.items() if name != "status" or is_quota}
    sent["metadata"] = _without(value["metadata"], _METADATA, ("annotations", _ANNOTATIONS))
    spec = value.get("spec")
    if isinstance(spec, dict):
        change = _SPECS.get(str(value.get("kind")))
        if change is not None:
            sent["spec"] = change(spec)
    if value.get("kind") == "Job":
        sent["metadata"] = _without(sent["metadata"], (), ("labels", _OF_JOBS))
    return sent


def _pod(spec: Json) -> Json:
    return _without(spec, ("nodeName",))


def _job(spec: Json) -> Json:
    """Take away what ties a Job to its pods: a server makes it for each Job anew."""
    if spec.get("manualSelector"):
        return spec
    template = spec.get("template")
    if isinstance(template, dict) and isinstance(template.get("metadata"), dict):
        metadata = _without(template["metadata"], ("creationTimestamp",), ("labels", _OF_JOBS))
        spec = {**spec, "template": {**template, "metadata": metadata}}
    return _without(spec, ("selector",))


def _volume(spec: Json) -> Json:
    claim = spec.get("claimRef")
    if not isinstance(claim, dict):
        return spec
    return {**spec, "claimRef": _without(claim, ("uid", "resourceVersion"))}


_SPECS = {"Pod": _pod, "Job": _job, "PersistentVolume": _volume}


def _without(map_: Json, names: Iterable[str], inner: tuple[str, frozenset[str]] | None = None) -> Json:
    """Return a map without some members, and without some members of one member; nothing empty is left of that."""
    left = {name: value for name, value in map_.items() if name not in names}
    if inner is not None and isinstance(left.get(inner[0]), dict):
        rest = {name: value for name, value in left[inner[0]].items() if name not in inner[1]}
        if rest:
            left[inner[0]] = rest
        else:
            del left[inner[0]]
    return left
