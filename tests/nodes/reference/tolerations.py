"""Taints that keep pods off a node, and which of them a pod tolerates."""

from __future__ import annotations

from tests.nodes.reference.world import Json


def tolerates(pod: Json, taint: Json) -> bool:
    for one in pod["spec"].get("tolerations") or ():
        if one.get("effect") and one["effect"] != taint["effect"]:
            continue
        if one.get("key") and one["key"] != taint["key"]:
            continue
        if one.get("operator") == "Exists" and (one.get("key") == taint["key"] or not one.get("key")):
            return True
        if (
            one.get("operator", "Equal") == "Equal"
            and one.get("key")
            and one.get("value", "") == taint.get("value", "")
        ):
            return True
    return False


def tolerates_all(pod: Json, node: Json) -> bool:
    """Return whether no taint of the node keeps the pod off; one that only advises against it never does."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return all(tolerates(pod, one) for one in taints if one["effect"] in ("NoSchedule", "NoExecute"))
