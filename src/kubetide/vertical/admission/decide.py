"""Answers to admission reviews.

1. A body that is no review is allowed: this webhook never blocks what it does not understand.
2. A pod gets a JSON patch with the recommendation of the VPA that controls it (``pods``); what goes wrong with
   it is said in the answer's ``problem``, and the pod goes in as it is.
3. A VPA object is checked and completed (``validation``); it is the only thing that is ever refused.

Source: vertical-pod-autoscaler 1.8.1, pkg/admission-controller/logic/server.go.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from kubetide.objects.base import Json
from kubetide.objects.field_errors import CAUSE_REASONS, INTERNAL, FieldError
from kubetide.objects.pod import Pod
from kubetide.objects.vpa import VerticalPodAutoscaler
from kubetide.units.quantity import QuantityError
from kubetide.vertical.admission.decoding import UnreadableVpa, read_vpa
from kubetide.vertical.admission.pods import pod_patches
from kubetide.vertical.admission.state import State
from kubetide.vertical.admission.validation import Findings, default_patches, validate
from kubetide.vertical.resources.boost import BoostError

Status = Literal["error", "skipped", "applied"]
Resource = Literal["unknown", "Pod", "VPA"]

MAX_BODY: Final = 5 << 20
"""Bytes of a review."""

JSON_TYPE: Final = "application/json"
TOO_LARGE: Final = "request payload too large\n"

_PODS: Final = ("", "pods")
_NULL: Final = msgspec.Raw(b"null")
_VPAS: Final = ("autoscaling.k8s.io", "verticalpodautoscalers")


class _GroupResource(msgspec.Struct):
    group: str = ""
    version: str = ""
    resource: str = ""


class Request(msgspec.Struct, rename="camel"):
    """``request`` of an AdmissionReview; the handler of the kind parses the objects."""

    uid: str = ""
    resource: _GroupResource = msgspec.field(default_factory=_GroupResource)
    namespace: str = ""
    name: str = ""
    operation: str = ""
    object: msgspec.Raw = _NULL
    old_object: msgspec.Raw = _NULL


class _Review(msgspec.Struct):
    request: Request | None = None


class Answer(msgspec.Struct, frozen=True):
    """The answer to a review.

    Attributes:
        uid: Of the request.
        patch: Changes of the object, empty for none.
        refusal: The Status of a refusal; None allows.
        warnings: For whoever sent the object.
        status, resource: Labels of the controller's own metrics. A refusal is no error of its own.
        problem: Why a pod goes in as it is although a VPA may ask for it; for the log.
        vpa: The VPA that controls the pod, as namespace and name.
    """

    uid: str = ""
    patch: Sequence[Json] = ()
    refusal: Json | None = None
    warnings: tuple[str, ...] = ()
    status: Status = "skipped"
    resource: Resource = "unknown"
    problem: str = ""
    vpa: tuple[str, str] | None = None


_REVIEW = msgspec.json.Decoder(_Review)
_POD = msgspec.json.Decoder(Pod)
_ANY = msgspec.json.Decoder()


def admit(state: State, body: bytes) -> Answer:
    """Return the answer to a posted review. Never raises: unreadable reviews are allowed."""
    try:
        request = _REVIEW.decode(body).request
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return Answer(status="error", problem=f"the review cannot be read: {error}")
    if request is None:
        return Answer(status="error", problem="the review has no request")
    what = request.resource.group, request.resource.resource
    if what == _PODS:
        return _admit_pod(state, request)
    if what == _VPAS:
        return _admit_vpa(state, request)
    resource = f"{what[1]}.{what[0]}".rstrip(".")
    return Answer(uid=request.uid, status="error", problem=f"not supported resource type: {resource}")


# ── pods ────────────────────────────────────────────────────────────────────────────────────────


def _admit_pod(state: State, request: Request) -> Answer:
    try:
        return _patched(state, request)
    except (msgspec.MsgspecError, QuantityError, BoostError, UnicodeDecodeError, RecursionError) as error:
        return Answer(uid=request.uid, status="error", resource="Pod", problem=str(error))


def _patched(state: State, request: Request) -> Answer:
    if request.resource.version != "v1":
        problem = f"only v1 Pods are supported, not {request.resource.version}"
        return Answer(uid=request.uid, status="error", resource="Pod", problem=problem)
    pod = _POD.decode(request.object)
    if not pod.metadata.name:
        meta = msgspec.structs.replace(
            pod.metadata, name=f"{pod.metadata.generate_name}%", namespace=request.namespace
        )
        pod = msgspec.structs.replace(pod, metadata=meta)
    match = state.vpas.of_pod(pod.metadata, state.workloads)
    if match.vpa is None:
        return Answer(uid=request.uid, resource="Pod", problem=match.problem)
    patch = pod_patches(pod, match.vpa, state.bounds(pod.metadata.namespace), state.settings)
    meta = match.vpa.metadata
    return Answer(
        uid=request.uid, patch=patch, status="applied", resource="Pod", vpa=(meta.namespace, meta.name)
    )


# ── VPA objects ─────────────────────────────────────────────────────────────────────────────────


def _admit_vpa(state: State, request: Request) -> Answer:
    try:
        vpa, old = _vpa_of(request.object), None
        if request.operation == "UPDATE":
            old = _vpa_of(request.old_object)
        findings = validate(vpa.spec, old.spec if old is not None else None, state.settings.gates)
        patch = default_patches(vpa.spec)
    except UnreadableVpa as error:
        return _refused(request, Findings([FieldError(".", INTERNAL, None, str(error))]))
    except QuantityError as error:
        _, _, why = str(error).partition(" is not a quantity: ")
        return _refused(request, Findings([FieldError(".", INTERNAL, None, why or str(error))]))
    if findings.errors:
        return _refused(request, findings)
    return Answer(
        uid=request.uid,
        patch=patch,
        warnings=tuple(findings.warnings),
        status="applied" if patch else "skipped",
        resource="VPA",
    )


def _vpa_of(body: msgspec.Raw) -> VerticalPodAutoscaler:
    if body == _NULL:
        raise UnreadableVpa("unexpected end of JSON input")  # as Go reads an object that is not there
    try:
        decoded = _ANY.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableVpa(str(error)) from error
    return read_vpa(decoded)


def _refused(request: Request, findings: Findings) -> Answer:
    group, name = _VPAS[0], request.name
    texts = list(dict.fromkeys(str(error) for error in findings.errors))
    what = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    causes = [
        {
            "reason": CAUSE_REASONS[error.type],
            "message": str(error).removeprefix(f"{error.field}: "),
            "field": error.field,
        }
        for error in findings.errors
    ]
    message = f'VerticalPodAutoscaler.{group} "{name}" is invalid: {what}'
    refusal: Json = {
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Invalid",
        "details": {"name": name, "group": group, "kind": "VerticalPodAutoscaler", "causes": causes},
        "code": 422,
    }
    return Answer(
        uid=request.uid,
        refusal=refusal,
        warnings=tuple(findings.warnings),
        resource="VPA",
        problem=message,
    )


# ── the response ────────────────────────────────────────────────────────────────────────────────


def response_of(answer: Answer) -> Json:
    """Return the AdmissionReview for an answer."""
    response: Json = {"uid": answer.uid, "allowed": answer.refusal is None}
    if answer.refusal is not None:
        response["status"] = answer.refusal
    if answer.patch:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


class Reply(msgspec.Struct, frozen=True):
    """The reply to a POST: HTTP status, body, and its answer; no answer without a review."""

    status: int
    body: bytes = b""
    answer: Answer | None = None


def reply(state: State, content_type: str, body: bytes) -> Reply:
    """Return the reply to a POST.

    One that is not said to be JSON gets an empty answer; of the others too large a one is refused, as by upstream.
    """
    if content_type != JSON_TYPE:
        return Reply(200)
    if len(body) > MAX_BODY:
        return Reply(413, TOO_LARGE.encode())
    return _reply(admit(state, body))


def allowed(body: bytes, problem: str) -> Reply:
    """Return the reply that allows whatever a review asks for; without its UID where the review cannot be read."""
    try:
        request = _REVIEW.decode(body).request
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        request = None
    uid = request.uid if request is not None else ""
    return _reply(Answer(uid=uid, status="error", problem=problem))


def _reply(answer: Answer) -> Reply:
    return Reply(200, msgspec.json.encode(response_of(answer)), answer)
