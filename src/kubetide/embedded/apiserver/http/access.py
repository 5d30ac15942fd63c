"""Who asks, and what they may do: bearer tokens and client certificates, each with an allow-list."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kubetide.ports.errors import BadRequest, Forbidden, Unauthorized

ADMINISTRATORS = "system:masters"
"""Whoever is in this group may do everything."""

AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows verbs on resources; ``*`` stands for all. Nothing is allowed that no rule allows.

    Attributes:
        resources: Plural names, ``deployments`` or ``deployments/scale``; ``*/scale`` is that of every kind.
        namespaces: Where; an entry other than ``*`` allows nothing at the cluster scope.
        names: Of objects; empty stands for all, and for requests that name none.
        paths: That are no resources; ``/healthz/*`` is all below.
    """

    verbs: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    resources: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("*",)
    names: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, wish: Wish) -> bool:
        return (
            _in(wish.verb, self.verbs)
            and _in(wish.group, self.groups)
            and (_in(wish.resource, self.resources) or self._has_subresource(wish.resource))
            and _in(wish.namespace, self.namespaces)
            and (not self.names or wish.name in self.names)
        )

    def allows_path(self, verb: str, path: str) -> bool:
        """Return whether it allows a request for a path that is no resource."""
        return _in(verb, self.verbs) and any(
            path == one or (one.endswith("*") and path.startswith(one[:-1])) for one in self.paths
        )

    def _has_subresource(self, resource: str) -> bool:
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self.resources

    def holds_in(self, namespace: str) -> bool:
        """Return whether it allows anything in the namespace."""
        return _in(namespace, self.namespaces)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a request wants to do; ``resource`` has its subresource after a slash."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class User:
    """An identity with its allow-list; members of ``system:masters`` need none.

    Attributes:
        missing_roles: The namespace of each binding whose role is not there, empty for one of the cluster, and the error.
    """

    name: str
    groups: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    missing_roles: tuple[tuple[str, str], ...] = ()

    def may(self, wish: Wish) -> bool:
        return ADMINISTRATORS in self.groups or any(rule.allows(wish) for rule in self.rules)

    def may_path(self, verb: str, path: str) -> bool:
        """Return whether a rule allows a request for a path that is no resource."""
        return ADMINISTRATORS in self.groups or any(rule.allows_path(verb, path) for rule in self.rules)

    def why_not(self, namespace: str) -> str:
        """Return why bindings grant no more in a namespace, in the words of the RBAC authorizer; else empty."""
        errors = [text for where, text in self.missing_roles if where in ("", namespace)]
        if not errors:
            return ""
        return f"RBAC: {errors[0]}" if len(errors) == 1 else f"RBAC: [{', '.join(dict.fromkeys(errors))}]"

    def require(self, wish: Wish) -> None:
        """Raise Forbidden, in the words of the RBAC authorizer, when no rule allows it."""
        if self.may(wish):
            return
        named = f' "{wish.name}"' if wish.name else ""
        plural = wish.resource.partition("/")[0]
        title = f"{plural}.{wish.group}" if wish.group else plural
        where = f'in the namespace "{wish.namespace}"' if wish.namespace else "at the cluster scope"
        details = {"name": wish.name} if wish.name else {}
        if wish.group:
            details["group"] = wish.group
        why = self.why_not(wish.namespace)
        raise Forbidden(
            f'{title}{named} is forbidden: User "{self.name}" cannot {wish.verb} resource '
            f'"{wish.resource}" in API group "{wish.group}" {where}{f": {why}" if why else ""}',
            details={**details, "kind": plural},
        )

    def require_path(self, verb: str, path: str) -> None:
        """Raise Forbidden for a path that is no resource where no rule allows it."""
        if not self.may_path(verb, path):
            raise Forbidden(f'forbidden: User "{self.name}" cannot {verb} path "{path}"')


_SERVICE_ACCOUNT = "system:serviceaccount:"
_ANONYMOUS = "system:anonymous"


class Identities:
    """Knows users by their tokens; a client certificate (already verified) names its own user."""

    def __init__(self, tokens: Mapping[str, User], certificate_rules: Sequence[Rule] = ()) -> None:
        self._tokens = [(token.encode(), user) for token, user in tokens.items()]
        self._certificate_rules = tuple(certificate_rules)

    def user_of(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """Return the user of a request. Raises Unauthorized for none, or for a token nobody has."""
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer" and token:
            sent = token.strip().encode()
            for known, user in self._tokens:
                if hmac.compare_digest(known, sent):
                    return _authenticated(user)
            raise Unauthorized("Unauthorized")
        if certificate:
            fields = [pair for part in certificate.get("subject", ()) for pair in part]
            name = next((value for key, value in fields if key == "commonName"), "")
            if name:
                groups = tuple(value for key, value in fields if key == "organizationName")
                return _authenticated(User(name, groups, self._certificate_rules))
        raise Unauthorized("Unauthorized")

    def acting_as(self, user: User, headers: Mapping[str, str], groups: Sequence[str]) -> User:
        """Return the user that a request acts as: its own, or the one that it impersonates.

        The one impersonated has the rules of the token of that name, if there is one; what stored Roles grant it is not
        among them yet (``with_stored_roles``).

        Args:
            headers: Of the request.
            groups: The values of its header ``Impersonate-Group``.
        Raises: Forbidden for a user who may not; BadRequest for a request that does not say whom, or more than a name
            and groups.
        Source: apiserver v1.36, the filter for impersonation.
        """
        name = headers.get("Impersonate-User", "")
        others = [key for key in headers if key.lower().startswith(("impersonate-uid", "impersonate-extra-"))]
        if not name:
            if groups or others:
                raise BadRequest(f"requested {list(groups) or others} without impersonating a user")
            return user
        if others:
            raise BadRequest(f"this server impersonates users and groups; {others[0]} is not supported")
        user.require(_impersonation(name))
        for group in groups:
            user.require(Wish("impersonate", "", "groups", name=group))
        own = tuple(groups) or _groups_of_account(name)
        rules = next((known.rules for _, known in self._tokens if known.name == name), ())
        acted = User(name, own, rules)
        return acted if name == _ANONYMOUS else _authenticated(acted)


def _impersonation(name: str) -> Wish:
    """Return what a user must be allowed to act as another."""
    if name.startswith(_SERVICE_ACCOUNT):
        namespace, _, account = name.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return Wish("impersonate", "", "serviceaccounts", namespace, account)
    return Wish("impersonate", "", "users", name=name)


def _groups_of_account(name: str) -> tuple[str, ...]:
    """Return the groups that a service account is in by its name."""
    if not name.startswith(_SERVICE_ACCOUNT):
        return ()
    namespace = name.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


def _in(value: str, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or value in allowed
