"""Questions about oneself: who am I, and what may I do (``kubectl auth``)."""

from __future__ import annotations

from typing import Any

from kubetide.embedded.apiserver.http.access import ADMINISTRATORS, Rule, User, Wish
from kubetide.objects.base import Json
from kubetide.ports.errors import BadRequest

ACCESS_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
RULES_REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
SUBJECT_REVIEW = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

# What everybody who is known may do (upstream's roles system:basic-user, -discovery, -public-info-viewer).
_OPEN_RESOURCES: tuple[Json, ...] = (
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
    },
)
_HEALTH = ("/healthz", "/livez", "/readyz", "/version", "/version/")
_OPEN_PATHS: tuple[Json, ...] = (
    {
        "verbs": ["get"],
        "nonResourceURLs": ["/api", "/api/*", "/apis", "/apis/*", *_HEALTH, "/openapi", "/openapi/*"],
    },
    {"verbs": ["get"], "nonResourceURLs": list(_HEALTH)},
)
_EVERYTHING = Rule(paths=("*",))


def is_open(verb: str, path: str) -> bool:
    """Return whether everybody who is known may ask for a path that is no resource."""
    return any(
        verb in rule["verbs"]
        and any(
            path == one or (one.endswith("*") and path.startswith(one[:-1]))
            for one in rule["nonResourceURLs"]
        )
        for rule in _OPEN_PATHS
    )


def answer_review(path: str, user: User, body: Any) -> Json:
    """Return the review with its status. Raises BadRequest for a body that asks nothing."""
    if path == SUBJECT_REVIEW:
        return {
            "kind": "SelfSubjectReview",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"creationTimestamp": None},
            "status": {"userInfo": {"username": user.name, "groups": list(user.groups)}},
        }
    if path == RULES_REVIEW:
        return _rules_review(user, body)
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
        asked = spec.get("nonResourceAttributes") or {}
        verb, path = asked.get("verb") or "", asked.get("path") or ""
        allowed = is_open(verb, path) or user.may_path(verb, path)
    why = "" if allowed else user.why_not(asked.get("namespace") or "")
    return {
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": spec,
        "status": {"allowed": allowed} | ({"reason": why} if why else {}),
    }


def _rules_review(user: User, body: Any) -> Json:
    """List what the user may do in a namespace. Raises BadRequest for a review that names none."""
    spec = body.get("spec") if isinstance(body, dict) else None
    namespace = spec.get("namespace") if isinstance(spec, dict) else None
    if not namespace:
        raise BadRequest("no namespace on request")
    is_admin = ADMINISTRATORS in user.groups
    rules = [_EVERYTHING] if is_admin else user.rules
    held = [
        {
            "verbs": list(rule.verbs),
            "apiGroups": list(rule.groups),
            "resources": list(rule.resources),
            **({"resourceNames": list(rule.names)} if rule.names else {}),
        }
        for rule in rules
        if rule.resources and rule.holds_in(namespace)
    ]
    everywhere = [
        {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.paths)} for rule in rules if rule.paths
    ]
    why = user.why_not(namespace)
    return {
        "kind": "SelfSubjectRulesReview",
        "apiVersion": "authorization.k8s.io/v1",
        "metadata": {"creationTimestamp": None},
        "spec": {},
        "status": {
            "resourceRules": [*held, *_OPEN_RESOURCES],
            "nonResourceRules": [*everywhere, *_OPEN_PATHS],
            "incomplete": bool(why),
            **({"evaluationError": why} if why else {}),
        },
    }
