"""Who asks, and what they may do: bearer tokens and client certificates, each with an allow-list."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kubetide.ports.errors import Forbidden, Unauthorized

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
        """Whether it allows anything in the namespace."""
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
        """Raises Forbidden, in the words of the RBAC authorizer, when no rule allows it."""
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
        """Raises Forbidden for a path that is no resource: rules name resources, so only administrators may."""
        if ADMINISTRATORS not in self.groups:
            raise Forbidden(f'forbidden: User "{self.name}" cannot {verb} path "{path}"')


class Identities:
    """Knows users by their tokens; a client certificate (already verified) names its own user."""

    def __init__(self, tokens: Mapping[str, User], certificate_rules: Sequence[Rule] = ()) -> None:
        self._tokens = [(token.encode(), user) for token, user in tokens.items()]
        self._certificate_rules = tuple(certificate_rules)

    def user_of(self, authorization: str, certificate: Mapping[str, Any] | None) -> User:
        """Gives the user of a request. Raises Unauthorized for none, or for a token nobody has."""
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


def _authenticated(user: User) -> User:
    if AUTHENTICATED in user.groups:
        return user
    return User(user.name, (*user.groups, AUTHENTICATED), user.rules)


def _in(value: str, allowed: tuple[str, ...]) -> bool:
    return "*" in allowed or value in allowed
