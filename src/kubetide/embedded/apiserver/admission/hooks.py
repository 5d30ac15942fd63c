"""Webhooks as they are looked at for each request, read from their configurations once."""

from __future__ import annotations

import base64
from collections.abc import Iterable

import msgspec

from kubetide.objects.webhooks import (
    MutatingWebhook,
    MutatingWebhookConfiguration,
    RuleWithOperations,
    ServiceReference,
    ValidatingWebhook,
    ValidatingWebhookConfiguration,
)
from kubetide.units.selectors import Selector

Configuration = MutatingWebhookConfiguration | ValidatingWebhookConfiguration


class Rule(msgspec.Struct, frozen=True):
    """Which requests a webhook is asked about; ``resources`` are pairs with the subresource."""

    operations: frozenset[str]
    groups: frozenset[str]
    versions: frozenset[str]
    resources: tuple[tuple[str, str], ...]
    scope: str


class Hook(msgspec.Struct, frozen=True):
    """One webhook.

    Attributes:
        identity: Unique among all.
        url: Where it listens; empty when it names a Service.
        fails_closed: A call that fails refuses the request.
        conditions: Expressions of which every one must hold of a request.
        any_version: A rule for another version of the resource concerns the request, too.
        again: It may be asked once more when a later webhook has changed the object.
    """

    identity: str
    name: str
    url: str
    service: ServiceReference | None
    authority: bytes
    rules: tuple[Rule, ...]
    namespace_selector: Selector
    object_selector: Selector
    review_versions: tuple[str, ...]
    timeout_s: int
    fails_closed: bool
    conditions: tuple[str, ...]
    any_version: bool
    again: bool


def hooks_of(configurations: Iterable[Configuration]) -> tuple[Hook, ...]:
    """Return the webhooks of stored configurations, in the order of the configurations' names."""
    return tuple(
        _hook(one.metadata.name, webhook)
        for one in sorted(configurations, key=lambda one: one.metadata.name)
        for webhook in one.webhooks or ()
    )


def _hook(configuration: str, webhook: MutatingWebhook | ValidatingWebhook) -> Hook:
    client = webhook.client_config
    return Hook(
        identity=f"{configuration}/{webhook.name}",
        name=webhook.name,
        url=client.url or "",
        service=client.service,
        authority=base64.b64decode(client.ca_bundle or ""),
        rules=tuple(_rule(rule) for rule in webhook.rules or ()),
        namespace_selector=Selector.from_object(webhook.namespace_selector),
        object_selector=Selector.from_object(webhook.object_selector),
        review_versions=webhook.admission_review_versions or (),
        timeout_s=webhook.timeout_seconds or 10,
        fails_closed=webhook.failure_policy != "Ignore",
        conditions=tuple(one.expression.strip() for one in webhook.match_conditions or ()),
        any_version=webhook.match_policy != "Exact",
        again=isinstance(webhook, MutatingWebhook) and webhook.reinvocation_policy == "IfNeeded",
    )


def _rule(rule: RuleWithOperations) -> Rule:
    resources = (text.partition("/") for text in rule.resources or ())
    return Rule(
        operations=frozenset(rule.operations or ()),
        groups=frozenset(rule.api_groups or ()),
        versions=frozenset(rule.api_versions or ()),
        resources=tuple((resource, subresource) for resource, _, subresource in resources),
        scope=rule.scope or "*",
    )
