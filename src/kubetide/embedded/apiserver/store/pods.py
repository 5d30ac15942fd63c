"""The subresources of a pod that act: ``binding`` and ``eviction``.

Source: apiserver v1.36, registry/core/pod: BindingREST and EvictionREST.
"""

from __future__ import annotations

from kubetide.embedded.apiserver.store.errors import conflict, forbidden
from kubetide.embedded.apiserver.store.request import Options
from kubetide.embedded.apiserver.store.revision import Revision
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.embedded.apiserver.store.writes import Writer
from kubetide.objects.base import Json
from kubetide.objects.field_errors import unsupported
from kubetide.objects.kinds import PDBS, PODS
from kubetide.objects.pod import Pod, is_finished, pod_condition
from kubetide.objects.policy import PodDisruptionBudget
from kubetide.ports.errors import InternalError, TooManyRequests, Unclassified
from kubetide.units.selectors import Selector, SelectorError
from kubetide.units.time import Instant, format_rfc3339

_MOST_UNCONFIRMED = 2000
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


def bind(writer: Writer, pod: Revision, body: Json, options: Options, now: Instant) -> None:
    """Bind a pod to the node that a Binding names. Raises Conflict, Unclassified (no target)."""
    name, json = pod.key[1], pod.json
    target = body.get("target") or {}
    node = target.get("name") or ""
    if target.get("kind") not in {None, "", "Node"}:
        raise Unclassified(str(unsupported("target.kind", target["kind"], ("Node", "<empty>"))))
    if not node:
        raise Unclassified("target.name: Required value")
    sent = body.get("metadata") or {}
    uid = options.uid or sent.get("uid") or ""
    spec = json.get("spec") or {}
    why = ""
    if uid and uid != pod.uid:
        why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.uid}"
    elif json["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(PODS, name, why, resource="pods/binding")
    meta = pod.metadata
    if sent.get("annotations"):
        meta = {**meta, "annotations": {**(meta.get("annotations") or {}), **sent["annotations"]}}
    # A nomination ends with the binding, so that it misleads nobody later.
    status = {name: part for name, part in (json.get("status") or {}).items() if name != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    new = {
        **json,
        "metadata": meta,
        "spec": {**spec, "nodeName": node},
        "status": {**status, "conditions": _with_condition(status, scheduled, now)},
    }
    writer.put(PODS, pod.key, new, dry_run=options.dry_run)


def evict(store: Store, writer: Writer, pod: Revision, options: Options, now: Instant) -> None:
    """Delete a pod if the disruption budget allows it.

    Raises TooManyRequests, Conflict (preconditions), InternalError (several budgets), Forbidden.
    """
    read = pod.read_as(Pod)
    if read.status.phase == "Pending" or is_finished(read) or read.metadata.deletion_timestamp:
        writer.delete(PODS, pod.key, options)
        return
    if options.uid and options.uid != pod.uid:
        raise conflict(
            PODS,
            pod.key[1],
            f"Precondition failed: UID in precondition: {options.uid}, UID in object meta: {pod.uid}",
        )
    if options.resource_version and options.resource_version != str(pod.version):
        raise conflict(PODS, pod.key[1])
    budgets = [found for found in store.select(PDBS, Selection(PDBS, pod.key[0])) if _covers(found, read)]
    if len(budgets) > 1:
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if budgets and not _is_free(read, budgets[0].read_as(PodDisruptionBudget)):
        _take_from(writer, budgets[0], pod.key[1], options, now)
    if not options.dry_run:
        status = pod.json.get("status") or {}
        reason = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        marked = {**pod.json, "status": {**status, "conditions": _with_condition(status, reason, now)}}
        pod = writer.put(PODS, pod.key, marked)
    writer.delete(PODS, pod.key, Options(grace_period_s=options.grace_period_s, dry_run=options.dry_run))


def _covers(budget: Revision, pod: Pod) -> bool:
    """Return whether a budget is the pod's. Source: kube-apiserver v1.36: one whose selector cannot be read is no pod's."""
    selector = budget.read_as(PodDisruptionBudget).spec.selector
    try:
        return Selector.from_object(selector).matches(pod.metadata.labels)
    except SelectorError:
        return False


def _is_free(pod: Pod, budget: PodDisruptionBudget) -> bool:
    """Return whether an unhealthy pod may go without being counted."""
    ready = pod_condition(pod, "Ready")
    if ready is not None and ready.status == "True":
        return False
    if budget.spec.unhealthy_pod_eviction_policy == "AlwaysAllow":
        return True
    return 0 < budget.status.desired_healthy <= budget.status.current_healthy


def _take_from(writer: Writer, revision: Revision, pod: str, options: Options, now: Instant) -> None:
    """Take one disruption from a budget, or refuses."""
    budget = revision.read_as(PodDisruptionBudget)
    name, status = revision.key[1], budget.status
    if status.observed_generation < budget.metadata.generation:
        raise _refused(f"The disruption budget {name} is still being processed by the server.", 10)
    if status.disruptions_allowed < 0:
        raise forbidden(PDBS, name, "pdb disruptions allowed is negative")
    if len(status.disrupted_pods or ()) > _MOST_UNCONFIRMED:
        raise forbidden(
            PDBS, name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if status.disruptions_allowed == 0:
        raise _refused(
            f"The disruption budget {name} needs {status.desired_healthy} healthy pods "
            f"and has {status.current_healthy} currently"
        )
    json = revision.json["status"]
    left = status.disruptions_allowed - 1
    new = {
        **json,
        "disruptionsAllowed": left,
        "disruptedPods": {**(json.get("disruptedPods") or {}), pod: format_rfc3339(now)},
    }
    if left == 0:
        none_left = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": status.observed_generation,
        }
        new["conditions"] = _with_condition(json, none_left, now)
    writer.put(PDBS, revision.key, {**revision.json, "status": new}, dry_run=options.dry_run)


def _refused(message: str, retry_after_s: int | None = None) -> TooManyRequests:
    cause = {"reason": "DisruptionBudget", "message": message}
    return TooManyRequests(_REFUSED, causes=(cause,), retry_after_s=retry_after_s)


def _with_condition(status: Json, condition: Json, now: Instant) -> list[Json]:
    """Return the conditions with this one set; its transition time moves only when its status does."""
    conditions: list[Json] = list(status.get("conditions") or ())
    for index, old in enumerate(conditions):
        if old.get("type") == condition["type"]:
            same = old.get("status") == condition["status"]
            since = old.get("lastTransitionTime") if same else format_rfc3339(now)
            conditions[index] = {**condition, "lastTransitionTime": since}
            return conditions
    return [*conditions, {**condition, "lastTransitionTime": format_rfc3339(now)}]
