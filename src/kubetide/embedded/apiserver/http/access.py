"""Who asks, and what they may do: bearer tokens and client certificates, each with an allow-list."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubetide.ports.errors import BadRequest, Forbidden, Unauthorized

ADMINISTRATORS = "system:masters"
"""Whoever is in this group may do everything."""

AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Rule:
    """Allows verbs on resources; ``*`` stands for all. Nothing is allowed that no rule allows.

    Attributes:
        resources: Plural names, ``deployments`` or ``deployments/scale``.
        namespaces: Where; an entry other than ``*`` allows nothing at the cluster scope.
    """

    verbs: tuple[str, ...] = ("*",)
    groups: tuple[str, ...] = ("*",)
    resources: tuple[str, ...] = ("*",)
    namespaces: tuple[str, ...] = ("*",)

    def allows(self, wish: Wish) -> bool:
        return (
            _in(wish.verb, self.verbs)
            and _in(wish.group, self.groups)
            and _in(wish.resource, self.resources)
            and _in(wish.namespace, self.namespaces)
        )

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
    """An identity with its allow-list; members of ``system:masters`` need none."""

    name: str
    groups: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()

    def may(self, wish: Wish) -> bool:
        return ADMINISTRATORS in self.groups or any(rule.allows(wish) for rule in self.rules)

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
        raise Forbidden(
            f'{title}{named} is forbidden: User "{self.name}" cannot {wish.verb} resource '
            f'"{wish.resource}" in API group "{wish.group}" {where}',
            details={**details, "kind": plural},
        )

    def require_path(self, verb: str, path: str) -> None:
        """Raise Forbidden for a path that is no resource: rules name resources, so only administrators may."""
        if ADMINISTRATORS not in self.groups:
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

        The one impersonated has the rules of the token of that name, if there is one, and else none: Roles are
        stored here without effect. What it may do as a member of ``system:masters`` it may as well.

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
    return User(user.name, (*user.groups, AUTHENTICATED), user.rules)


def _in(value: str, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or value in allowed
