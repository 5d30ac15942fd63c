"""Questions about others: whose is this token, and what may they do (TokenReview, SubjectAccessReview).

Servers beside the API server ask them for those who come to them, as kube-rbac-proxy does.
"""

from __future__ import annotations

from typing import Any, Final

from kubetide.embedded.apiserver.http.access import AUTHENTICATED, Identities, User, Wish
from kubetide.embedded.apiserver.http.reviews import is_open
from kubetide.embedded.apiserver.http.roles import with_stored_roles
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.base import Json
from kubetide.ports.errors import BadRequest, Unauthorized

TOKEN_REVIEW: Final = "/apis/authentication.k8s.io/v1/tokenreviews"  # noqa: S105  a path
ACCESS_REVIEW: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"


def answer_delegated(path: str, asker: User, body: Any, identities: Identities, store: Store) -> Json:
    """Return the review with its status.

    Raises: Forbidden for an asker who may not create reviews; BadRequest for a body that asks nothing.
    Source: kube-apiserver v1.36, the registries of both kinds.
    """
    _, _, group, version, resource = path.split("/")
    asker.require(Wish("create", group, resource))
    spec = body.get("spec") if isinstance(body, dict) else None
    kind = "TokenReview" if path == TOKEN_REVIEW else "SubjectAccessReview"
    if not isinstance(spec, dict):
        raise BadRequest(f"a {kind} asks in spec")
    status = _of_token(spec, identities) if path == TOKEN_REVIEW else _of_access(spec, store)
    return {
        "kind": kind,
        "apiVersion": f"{group}/{version}",
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": status,
    }


def _of_token(spec: Json, identities: Identities) -> Json:
    token = spec.get("token")
    if not isinstance(token, str) or not token:
        raise BadRequest("token is required for TokenReview in authentication")
    try:
        user = identities.user_of(f"Bearer {token}", None)
    except Unauthorized:
        return {"user": {}, "error": "invalid bearer token"}
    return {"authenticated": True, "user": {"username": user.name, "groups": list(user.groups)}}


def _of_access(spec: Json, store: Store) -> Json:
    name, groups = spec.get("user") or "", tuple(spec.get("groups") or ())
    resource: Any = spec.get("resourceAttributes")
    path: Any = spec.get("nonResourceAttributes")
    if not (name or groups) or (resource is None) == (path is None):
        raise BadRequest(
            "a SubjectAccessReview names a user or groups, and one of resourceAttributes and nonResourceAttributes"
        )
    user = with_stored_roles(User(name, groups), store)
    if path is not None:
        verb, asked = path.get("verb") or "", path.get("path") or ""
        allowed = user.may_path(verb, asked) or (AUTHENTICATED in groups and is_open(verb, asked))
        why = "" if allowed else user.why_not("")
    else:
        named = resource.get("resource") or ""
        if resource.get("subresource"):
            named = f"{named}/{resource['subresource']}"
        namespace = resource.get("namespace") or ""
        wish = Wish(
            resource.get("verb") or "",
            resource.get("group") or "",
            named,
            namespace,
            resource.get("name") or "",
        )
        allowed = user.may(wish)
        why = "" if allowed else user.why_not(namespace)
    return {"allowed": allowed} | ({"reason": why} if why else {})
