"""Questions about oneself: who am I, and what may I do (``kubectl auth``)."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.server.access import User, Wish
from kubetide.objects.base import Json
from kubetide.ports.errors import BadRequest

ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
SUBJECT_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


def answer_review(path: str, user: User, body: Any) -> Json:
    """Gives the review with its status. Raises BadRequest for a body that asks nothing."""
    if path == SUBJECT_REVIEW:
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": None},
            "status": {"userInfo": {"username": user.name, "groups": list(user.groups)}},
        }
    spec = body.get("spec") if isinstance(body, dict) else None
    if not isinstance(spec, dict):
        raise BadRequest(
            "a SelfSubjectAccessReview asks in spec.resourceAttributes or spec.nonResourceAttributes"
        )
    asked = spec.get("resourceAttributes")
    if asked is not None:
        resource = asked.get("resource") or ""
        if asked.get("subresource"):
            resource = f"{resource}/{asked['subresource']}"
        allowed = user.may(
            Wish(
                asked.get("verb") or "",
                asked.get("group") or "",
                resource,
                asked.get("namespace") or "",
                asked.get("name") or "",
            )
        )
    else:
        # Paths outside the resources say nothing of the cluster: all who are known may read them.
        allowed = (spec.get("nonResourceAttributes") or {}).get("verb") == "get"
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": {"allowed": allowed},
    }
