"""Which webhooks a request concerns.

Source: apiserver v1.36, admission/plugin/webhook: predicates (rules, namespace, object) and generic.
"""

from __future__ import annotations

from kubetide.embedded.apiserver.admission.attributes import Attributes, Target, View, labels_of
from kubetide.embedded.apiserver.admission.hooks import Hook, Rule

CONFIGURATIONS = "admissionregistration.k8s.io"
"""Objects of this group are shown to no webhook: whoever locks themselves out can still undo it."""


def may_concern(hook: Hook, target: Target, version: str, *others: str) -> bool:
    """Return whether a rule covers the request, whatever the objects are.

    Args:
        hook: the webhook.
        target: what the request does to which resource.
        version: the version that it is asked in.
        others: the other versions of the resource.
    """
    if target.group == CONFIGURATIONS:
        return False
    versions = (version, *others) if hook.any_version else (version,)
    return any(covers(rule, target, one) for rule in hook.rules for one in versions)


def view_for(hook: Hook, attributes: Attributes) -> View | None:
    """Return the version in which a webhook is shown a request, None when the request does not concern it.

    The version of the request comes first; one that is equivalent to it next, earlier rules first.
    """
    target = attributes.target
    if target.group == CONFIGURATIONS or not _selects(hook, attributes):
        return None
    asked, *others = attributes.views
    if any(covers(rule, target, asked.version) for rule in hook.rules):
        return asked
    if hook.any_version:
        for rule in hook.rules:
            for view in others:
                if covers(rule, target, view.version):
                    return view
    return None


def covers(rule: Rule, target: Target, version: str) -> bool:
    """Return whether a rule covers an operation on a resource in a version."""
    return (
        _has(rule.operations, target.operation)
        and _has(rule.groups, target.group)
        and _has(rule.versions, version)
        and _in_scope(rule.scope, target)
        and any(
            resource in {"*", target.plural} and subresource in {"*", target.subresource}
            for resource, subresource in rule.resources
        )
    )


def _has(items: frozenset[str], item: str) -> bool:
    return item in items or "*" in items


def _in_scope(scope: str, target: Target) -> bool:
    if scope == "*":
        return True
    in_namespace = bool(target.namespace) and not target.is_namespace
    return in_namespace is (scope == "Namespaced")


def _selects(hook: Hook, attributes: Attributes) -> bool:
    """Return whether both selectors match: labels of the namespace, and of the object as it is or would be."""
    target = attributes.target
    if target.namespace:  # what is in no namespace is never left out
        own = target.is_namespace and not target.subresource and attributes.object is not None
        labels = labels_of(attributes.object) if own else attributes.namespace_labels
        if not hook.namespace_selector.matches(labels):
            return False
    if hook.object_selector.is_empty():
        return True
    found = (labels_of(attributes.object), labels_of(attributes.old))
    return any(labels is not None and hook.object_selector.matches(labels) for labels in found)
