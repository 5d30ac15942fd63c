"""AdmissionReviews: what a webhook is sent, and what its answer says.

Source: the AdmissionReview API (admission.k8s.io/v1 and v1beta1); apiserver v1.36,
admission/plugin/webhook: request and errors.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, NamedTuple

import msgspec

from kubetide.embedded.apiserver.admission.attributes import Attributes, View
from kubetide.embedded.apiserver.admission.caller import CallError
from kubetide.objects.base import Json
from kubetide.ports.errors import ApiError

_GROUP = "admission.k8s.io"
_KNOWN = ("v1", "v1beta1")


class BadAnswer(Exception):
    """An answer that says nothing that can be acted on; the text is upstream's."""


class Denied(ApiError):
    """A webhook has denied the request; code, reason and details are those of its answer."""

    def __init__(self, hook: str, said: Json) -> None:
        because = said.get("message") or said.get("reason") or ""
        text = f'admission webhook "{hook}" denied the request'
        super().__init__(f"{text}: {because}" if because else f"{text} without explanation")
        self.code = max(said.get("code") or 0, 400)
        self.reason = said.get("reason") or ""
        self._said = said

    def status(self) -> Json:
        """Return the ``metav1.Status`` of the answer, made a failure that names the webhook."""
        status: Json = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self._said.get("metadata") or {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        }
        for field, value in (("reason", self.reason), ("details", self._said.get("details"))):
            if value:
                status[field] = value
        return status


class Answer(NamedTuple):
    """What a webhook says; ``patch`` is None where it changes nothing."""

    allowed: bool
    status: Json
    patch: list[Json] | None
    warnings: tuple[str, ...]


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: dict[str, Any] | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: tuple[str, ...] | None = None


class _Review(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    response: _Response | None = None


def version_for(accepted: tuple[str, ...]) -> str:
    """Return the first version that a webhook takes and that is known; each has one, by its validation."""
    return next(version for version in accepted if version in _KNOWN)


def review_of(attributes: Attributes, view: View, uid: str, version: str) -> Json:
    """Return the AdmissionReview that asks a webhook about a write, in the version of a view."""
    target = attributes.target
    asked = attributes.views[0]

    def kind(in_view: View) -> Json:
        return dict(attributes.type_in(in_view)._asdict())

    def resource(in_view: View) -> Json:
        return {"group": target.group, "version": in_view.version, "resource": target.plural}

    request: Json = {"uid": uid, "kind": kind(view), "resource": resource(view)}
    if target.subresource:
        request["subResource"] = target.subresource
    request |= {"requestKind": kind(asked), "requestResource": resource(asked)}
    if target.subresource:
        request["requestSubResource"] = target.subresource
    if attributes.name:
        request["name"] = attributes.name
    if target.namespace:
        request["namespace"] = target.namespace
    request |= {
        "operation": target.operation,
        "userInfo": attributes.user.as_json(),
        "object": attributes.shown(attributes.object, view),
        "oldObject": attributes.shown(attributes.old, view),
        "dryRun": attributes.dry_run,
        "options": attributes.options,
    }
    return {"kind": "AdmissionReview", "apiVersion": f"{_GROUP}/{version}", "request": request}


def read_answer(body: bytes, *, uid: str, version: str, mutating: bool) -> Answer:
    """Read what a webhook has answered.

    Raises: CallError for what is no AdmissionReview, BadAnswer for one that does not answer this
    review, or says what such a webhook may not say.
    """
    review = _decoded(body)
    expected = f"{_GROUP}/{version}"
    if review.api_version.startswith(f"{_GROUP}/") and review.api_version != expected:
        said = review.api_version.rpartition("/")[2]
        raise CallError(
            f"converting ({said}.AdmissionReview) to ({version}.AdmissionReview): unknown conversion"
        )
    if review.kind and (review.api_version, review.kind) != (expected, "AdmissionReview"):
        raise CallError(f'no kind "{review.kind}" is registered for version "{review.api_version}"')
    response = review.response
    if response is None:
        raise BadAnswer("webhook response was absent")
    if version == "v1":
        _check(response, review, uid, mutating=mutating)
    return Answer(
        allowed=response.allowed,
        status=response.status or {},
        patch=_patch_in(response) if mutating and response.allowed else None,
        warnings=response.warnings or (),
    )


def _decoded(body: bytes) -> _Review:
    try:
        value = msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise CallError(f"couldn't get version/kind; json parse error: {error}") from error
    if not isinstance(value, dict):
        raise CallError("couldn't get version/kind; json parse error: the answer is no JSON object")
    try:
        review = msgspec.convert(value, _Review)
        _decode_patch(review.response)
    except (msgspec.ValidationError, binascii.Error) as error:
        raise CallError(str(error)) from error
    return review


def _decode_patch(response: _Response | None) -> bytes:
    text = response.patch if response is not None else None
    try:
        return base64.b64decode(text or "", validate=True)
    except ValueError as error:
        raise CallError(f"illegal base64 data in response.patch: {error}") from error


def _check(response: _Response, review: _Review, uid: str, *, mutating: bool) -> None:
    if response.uid != uid:
        raise BadAnswer(f'expected response.uid="{uid}", got "{response.uid}"')
    if not review.kind:
        group, _, version = review.api_version.rpartition("/")
        raise BadAnswer(
            f"expected webhook response of {_GROUP}/v1, Kind=AdmissionReview, got {group}/{version}, Kind="
        )
    if not mutating:
        for said, field in ((response.patch, "patch"), (response.patch_type is not None, "patchType")):
            if said:
                raise BadAnswer(f"validating webhook may not return response.{field}")
    elif response.patch and response.patch_type is None:
        raise BadAnswer("webhook returned response.patch but not response.patchType")
    elif not response.patch and response.patch_type is not None:
        raise BadAnswer("webhook returned response.patchType but not response.patch")
    elif response.patch_type == "":
        raise BadAnswer('webhook returned invalid response.patchType of ""')


class BadPatch(Exception):
    """A patch that is none; the text is upstream's."""


def _patch_in(response: _Response) -> list[Json] | None:
    if not response.patch:
        return None
    try:
        operations = msgspec.json.decode(_decode_patch(response), type=list[dict[str, Any]] | None)
    except msgspec.DecodeError as error:
        raise BadPatch(f"received undecodable patch in webhook response: {error}") from error
    if operations and response.patch_type not in {None, "JSONPatch"}:
        raise BadPatch(f'unsupported patch type "{response.patch_type}"')
    return operations or None
