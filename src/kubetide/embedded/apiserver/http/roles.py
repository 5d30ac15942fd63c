"""What stored Roles and ClusterRoles grant to whom: the bindings of a user and its groups, as rules.

Source: kube-apiserver v1.36, the RBAC authorizer. Roles that upstream creates by itself are not stored here;
of them ``cluster-admin`` is known all the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar, cast

from kubetide.embedded.apiserver.http.access import ADMINISTRATORS, Rule, User
from kubetide.embedded.apiserver.store.selection import Selection
from kubetide.embedded.apiserver.store.store import Store
from kubetide.objects.kinds import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, Kind
from kubetide.objects.meta import LabelSelector
from kubetide.objects.rbac import ClusterRole, PolicyRule, RoleBinding, Subject
from kubetide.units.selectors import Selector, SelectorError

T = TypeVar("T")

_CLUSTER_ADMIN = "cluster-admin"
_EVERYTHING = PolicyRule(verbs=("*",), api_groups=("*",), resources=("*",))
_EVERY_PATH = PolicyRule(verbs=("*",), non_resource_urls=("*",))


class _Missing(NamedTuple):
    message: str


def with_stored_roles(user: User, store: Store) -> User:
    """Return the user with what stored bindings grant it, and which of their roles are not there."""
    if ADMINISTRATORS in user.groups or ROLES not in store.kinds:
        return user
    rules, missing = list(user.rules), list[tuple[str, str]]()
    for kind in (CLUSTER_ROLE_BINDINGS, ROLE_BINDINGS):
        bindings: Sequence[RoleBinding] = _all(store, cast("Kind[RoleBinding]", kind))
        for binding in bindings:
            namespace = binding.metadata.namespace if kind.namespaced else ""
            if not any(_means(subject, user, namespace) for subject in binding.subjects or ()):
                continue
            found = _rules_of(store, binding, namespace)
            if isinstance(found, _Missing):
                missing.append((namespace, found.message))
            else:
                rules += (_granted(rule, namespace) for rule in found)
    return replace(user, rules=tuple(rules), missing_roles=tuple(missing))


def _means(subject: Subject, user: User, namespace: str) -> bool:
    """Return whether a binding's subject is the user or a group of it."""
    match subject.kind:
        case "User":
            return subject.name == user.name
        case "Group":
            return subject.name in user.groups
        case "ServiceAccount":
            home = subject.namespace or namespace
            return bool(home) and user.name == f"system:serviceaccount:{home}:{subject.name}"
    return False


def _rules_of(store: Store, binding: RoleBinding, namespace: str) -> Sequence[PolicyRule] | _Missing:
    name = binding.role_ref.name
    if binding.role_ref.kind == "Role":
        role = store.get(ROLES, (namespace, name))
        if role is None:
            return _Missing(f'role.rbac.authorization.k8s.io "{name}" not found')
        return role.read_as(ROLES.model).rules or ()
    found = store.get(CLUSTER_ROLES, ("", name))
    if found is None:
        if name == _CLUSTER_ADMIN:
            return (_EVERYTHING, _EVERY_PATH)
        return _Missing(f'clusterrole.rbac.authorization.k8s.io "{name}" not found')
    return tuple(_of_cluster_role(store, found.read_as(CLUSTER_ROLES.model), {name}))


def _of_cluster_role(store: Store, role: ClusterRole, seen: set[str]) -> Iterator[PolicyRule]:
    """Yield the rules of a role; those of one that aggregates are what the roles that it selects have."""
    if role.aggregation_rule is None:
        yield from role.rules or ()
        return
    selectors = [_read(one) for one in role.aggregation_rule.cluster_role_selectors or ()]
    for other in _all(store, CLUSTER_ROLES):
        name = other.metadata.name
        if name not in seen and any(one.matches(other.metadata.labels) for one in selectors):
            seen.add(name)
            yield from _of_cluster_role(store, other, seen)


def _read(selector: LabelSelector) -> Selector:
    try:
        return Selector.from_object(selector)
    except SelectorError:
        return Selector.from_object(None)


def _granted(rule: PolicyRule, namespace: str) -> Rule:
    """Return a rule as it holds by a binding of a namespace, or of the cluster."""
    return Rule(
        verbs=rule.verbs or (),
        groups=rule.api_groups or (),
        resources=rule.resources or (),
        namespaces=(namespace or "*",),
        names=rule.resource_names or (),
        # A path belongs to no namespace.
        paths=() if namespace else rule.non_resource_urls or (),
    )


def _all(store: Store, kind: Kind[T]) -> list[T]:
    return [one.read_as(kind.model) for one in store.select(kind, Selection(kind))]
