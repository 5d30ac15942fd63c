"""The admission component of the vertical suite: one posted review a case."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import msgspec
from tests.conformance.cases import Case, difference
from tests.conformance.vertical_world import limit_ranges_of, vpas_of, workloads_of

from kubetide.units.patch import json_patch
from kubetide.units.quantity import Quantity
from kubetide.vertical.admission.decide import Answer, Reply, reply
from kubetide.vertical.admission.settings import Settings
from kubetide.vertical.admission.state import State, index_of
from kubetide.vertical.flags import read_flags

_UPDATES = "/metadata/annotations/vpaUpdates"


def first_difference(case: Case) -> str | None:
    expected = case["expect"]
    found = _answered(case)
    allowed = difference("allowed", expected.get("allowed"), found.get("allowed"))
    if expected.get("panic"):
        # Upstream gives no answer. Ours lets the pod in, and a pod that upstream dies of says why it stays as it is.
        return difference("allowed", True, found.get("allowed"))
    if allowed:
        return allowed
    for name in (
        "httpStatus",
        "apiVersion",
        "kind",
        "uid",
        "warnings",
        "result",
        "patchType",
        "emptyBody",
    ):
        inner = difference(name, expected.get(name) or None, found.get(name) or None)
        if inner:
            return inner
    return difference("patch", expected.get("patch"), found.get("patch")) or difference(
        "patched", expected.get("patched"), found.get("patched")
    )


def answer_of(case: Case) -> Answer:
    """Give the answer behind the reply."""
    answer = _reply(case).answer
    assert answer is not None
    return answer


def _reply(case: Case) -> Reply:
    settings = read_flags(Settings, case.get("flags") or {})
    state = State(
        settings=settings,
        vpas=index_of(vpas_of(case), settings),
        workloads=workloads_of(case),
        limit_ranges=limit_ranges_of(case),
    )
    raw = case.get("rawBody")
    body = raw.encode() if raw is not None else json.dumps(case["review"]).encode()
    return reply(state, case.get("contentType") or "application/json", body)


def _answered(case: Case) -> dict[str, Any]:
    done = _reply(case)
    if done.answer is None and done.status != 200:
        return {"httpStatus": done.status}
    if not done.body:
        return {"httpStatus": done.status, "emptyBody": True}
    return {"httpStatus": done.status, **meaning_of(case["review"], done.body)}


def meaning_of(posted: dict[str, Any], body: bytes) -> dict[str, Any]:
    """Return what the answer to a review means: where upstream's order is random, and how amounts are spelled, is left out."""
    review = msgspec.json.decode(body)
    response = review["response"]
    found: dict[str, Any] = {
        "apiVersion": review["apiVersion"],
        "kind": review["kind"],
        "allowed": response["allowed"],
        "uid": response["uid"] or None,
        "warnings": response.get("warnings"),
        "result": _result(response.get("status")),
        "patchType": response.get("patchType"),
    }
    if "patch" in response:
        patch = json.loads(base64.b64decode(response["patch"]))
        found["patch"] = sorted((_with_sorted_items(op) for op in patch), key=lambda op: op["path"])
        found["patched"] = _patched(posted["request"], patch)
    return found


def _result(status: dict[str, Any] | None) -> dict[str, Any] | None:
    if status is None:
        return None
    causes = sorted(status["details"]["causes"], key=lambda cause: cause["field"])
    details = {key: value for key, value in status["details"].items() if key != "causes"}
    result = {key: status[key] for key in ("status", "code", "reason")}
    result |= {"details": details, "causes": causes}
    return result | {"message": status["message"]} if len(causes) <= 1 else result


def _with_sorted_items(op: dict[str, Any]) -> dict[str, Any]:
    """Sort the items of each container in ``vpaUpdates``; upstream's order is random."""
    return {**op, "value": _sorted_items(op["value"])} if op["path"] == _UPDATES else op


def _sorted_items(text: str) -> str:
    head, _, tail = text.partition(": ")
    parts = []
    for part in re.split(r"; (?=container \d)", tail):
        container, _, items = part.partition(": ")
        parts.append(f"{container}: {', '.join(sorted(items.split(', ')))}")
    return f"{head}: {'; '.join(parts)}"


def _patched(request: dict[str, Any], patch: list[dict[str, Any]]) -> dict[str, Any] | None:
    if request["resource"]["resource"] != "pods":
        return None
    pod = json_patch(request["object"], patch)
    annotations = pod["metadata"].get("annotations") or {}
    if "vpaUpdates" in annotations:
        annotations = {**annotations, "vpaUpdates": _sorted_items(annotations["vpaUpdates"])}
    resources = {c["name"]: _canonical(c.get("resources") or {}) for c in pod["spec"]["containers"]}
    return {"annotations": annotations, "resources": resources}


def _canonical(resources: dict[str, Any]) -> dict[str, Any]:
    """Print the quantities of a container as upstream does once it has read them."""
    return {
        side: {name: str(Quantity.parse(value)) for name, value in amounts.items()}
        for side, amounts in resources.items()
    }
