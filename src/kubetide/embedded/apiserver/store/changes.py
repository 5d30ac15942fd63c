"""What a PUT or a patch asks for: the whole object that is to be written."""

from __future__ import annotations

import json
from typing import cast

from kubetide.embedded.apiserver.patches.merging import PLAIN
from kubetide.embedded.apiserver.patches.strategic import (
    StrategicFormatError,
    StrategicPatchError,
    strategic_merge,
)
from kubetide.embedded.apiserver.store import metadata
from kubetide.embedded.apiserver.store.copying import copy_json
from kubetide.embedded.apiserver.store.custom_kinds.custom import CustomKind, shape_in
from kubetide.embedded.apiserver.store.errors import invalid_patch
from kubetide.embedded.apiserver.store.request import Request
from kubetide.embedded.apiserver.store.scale import SCALE, replicas_in, with_replicas
from kubetide.objects.base import Json
from kubetide.objects.nulls import without_nulls
from kubetide.ports.errors import BadRequest, Invalid, Unclassified, UnsupportedMediaType
from kubetide.units.patch import PatchError, json_patch, merge_patch

_NOT_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: "
    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
)

_NOT_APPLIED = "the server rejected our request due to an error in our request"


def changed(request: Request, old: Json) -> Json:
    """Return the whole object that a PUT or a patch asks for, its preconditions checked."""
    kind, body = request.kind, request.body
    is_scale = request.subresource == "scale"
    if request.verb == "replace":
        metadata.check_type(SCALE if is_scale else kind, body)
        sent = metadata.sent_in(kind, body)
        metadata.check_preconditions(kind, sent, old["metadata"], whole=True, scale=is_scale)
        return cast("Json", copy_json(body))
    if request.options.patch_type == "json":
        if not isinstance(body, list):
            raise BadRequest(
                f"error decoding patch: a JSON patch is a list of operations, not {type(body).__name__}"
            )
        try:
            new = json_patch(old, copy_json(body))
        except PatchError as error:
            if not isinstance(body, list):
                raise BadRequest(f"the JSON patch of {kind.resource} {request.name}: {error}") from error
            # The server does not say which operation of a patch could not be applied.
            raise Invalid(_NOT_APPLIED) from error
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise invalid_patch(json.dumps(new), "it leaves no object with metadata")
        metadata.check_preconditions(kind, new["metadata"], old["metadata"], whole=False)
        return cast("Json", new)
    metadata.check_preconditions(kind, metadata.sent_in(kind, body), old["metadata"], whole=False)
    if request.options.patch_type == "strategic":
        if isinstance(kind, CustomKind):
            raise UnsupportedMediaType(_NOT_STRATEGIC)
        try:
            new = strategic_merge(old, copy_json(body), PLAIN if is_scale else shape_in(kind))
        except StrategicFormatError as error:
            raise Unclassified(str(error)) from error
        except StrategicPatchError as error:
            raise BadRequest(str(error)) from error
    else:
        new = merge_patch(old, body if request.given else copy_json(body))
    expected = SCALE if is_scale else kind
    said, version = new.get("kind"), new.get("apiVersion")
    if isinstance(kind, CustomKind):
        if not is_scale:
            metadata.check_type(kind, new)
    elif (said, version) != (expected.kind, expected.api_version):
        why = metadata.other_type(expected, str(version), str(said))
        raise invalid_patch(json.dumps(body, separators=(",", ":")), why)
    return cast("Json", new)


def applied_config(request: Request) -> Json:
    """Return the configuration of an apply, a Scale as the fields of the object that it scales.

    Raises: BadRequest, Invalid (no field manager).
    """
    kind, config = request.kind, request.body
    if not request.options.field_manager:
        text = "Required value: is required for apply patch"
        raise Invalid(
            f'PatchOptions.meta.k8s.io "" is invalid: fieldManager: {text}',
            details={"group": "meta.k8s.io", "kind": "PatchOptions"},
            causes=({"reason": "FieldValueRequired", "message": text, "field": "fieldManager"},),
        )
    sent = metadata.sent_in(kind, config)
    if sent.get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    if request.subresource == "scale":
        metadata.check_type(SCALE, config)
        replicas = replicas_in(config, request.name)
        return with_replicas(kind, {"metadata": {"name": request.name}}, replicas)
    version, said = config.get("apiVersion") or "", config.get("kind") or ""
    if not (isinstance(version, str) and isinstance(said, str)):
        raise BadRequest(f"the apiVersion and the kind of a {kind.kind} are texts")
    if (version, said) != (kind.api_version, kind.kind):
        group, _, short = version.rpartition("/")
        raise BadRequest(f"invalid object type: {group}/{short}, Kind={said}")
    if sent.get("name", request.name) != request.name:
        raise BadRequest(
            f"the name of the object ({sent['name']}) does not match the name on the URL ({request.name})"
        )
    return cast("Json", without_nulls(copy_json({**config, "metadata": {**sent, "name": request.name}})))
