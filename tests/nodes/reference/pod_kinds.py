"""What upstream asks of a pod: who owns it, how important it is, which other pods are like it."""

from __future__ import annotations

from copy import deepcopy

from tests.nodes.reference.snapshot import amount
from tests.nodes.reference.world import Json

MOST_KINDS = 10
"""How many different pods of one controller upstream remembers."""


def note(pod: Json, name: str) -> str | None:
    found = (pod["metadata"].get("annotations") or {}).get(name)
    return None if found is None else str(found)


def controller(pod: Json) -> Json | None:
    owners = pod["metadata"].get("ownerReferences") or ()
    return next((one for one in owners if one.get("controller")), None)


def is_daemon(pod: Json) -> bool:
    owner = controller(pod)
    if owner is not None and owner["kind"] == "DaemonSet":
        return True
    return note(pod, "cluster-autoscaler.kubernetes.io/daemonset-pod") == "true"


def is_mirror(pod: Json) -> bool:
    return note(pod, "kubernetes.io/config.mirror") is not None


def is_static(pod: Json) -> bool:
    return note(pod, "kubernetes.io/config.source") not in (None, "api")


def is_terminating(pod: Json) -> bool:
    return bool(pod["metadata"].get("deletionTimestamp"))


def priority(pod: Json) -> int:
    return int(pod["spec"].get("priority") or 0)


def is_expendable(pod: Json, cutoff: int) -> bool:
    """Return whether the priority is below the cutoff; a pod that has none never is."""
    own = pod["spec"].get("priority")
    return own is not None and int(own) < cutoff


def identity(pod: Json) -> str:
    meta = pod["metadata"]
    return str(meta.get("uid") or f"{meta.get('namespace', '')}/{meta['name']}")


def like(one: Json, other: Json) -> bool:
    """Return whether two pods of one controller are the same to the scheduler. Annotations and namespace do not count.

    No labels and an empty map of labels are two things here.
    """
    labels = one["metadata"].get("labels") == other["metadata"].get("labels")
    return labels and _plain(one["spec"]) == _plain(other["spec"])


def _plain(spec: Json) -> Json:
    """The spec without what upstream leaves out: host name, environment, projected volumes and their mounts."""
    volumes = spec.get("volumes") or ()
    dropped = {one["name"] for one in volumes if "projected" in one}
    plain = dict(spec)
    plain.pop("hostname", None)
    plain["volumes"] = [one for one in volumes if one["name"] not in dropped]
    for field in ("containers", "initContainers"):
        plain[field] = [_container(one, dropped) for one in spec.get(field) or ()]
    return {name: value for name, value in plain.items() if value not in ([], {}, "", None)}


def _container(one: Json, dropped: set[str]) -> Json:
    plain = {name: value for name, value in one.items() if name != "env"}
    plain["volumeMounts"] = [each for each in one.get("volumeMounts") or () if each["name"] not in dropped]
    resources = one.get("resources") or {}
    plain["resources"] = {
        side: {name: amount(name, value) for name, value in (resources.get(side) or {}).items()}
        for side in ("requests", "limits")
    }
    return plain


def has_ended(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def unbound(pod: Json) -> Json:
    """Return a copy of the pod that is on no node."""
    copy = deepcopy(pod)
    copy["spec"].pop("nodeName", None)
    return copy
