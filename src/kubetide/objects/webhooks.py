"""admissionregistration.k8s.io/v1 MutatingWebhookConfiguration and ValidatingWebhookConfiguration."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, LabelSelector


class ServiceReference(ApiStruct):
    namespace: str = ""
    name: str = ""
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(ApiStruct):
    """Where a webhook listens; ``ca_bundle`` is PEM in base64."""

    url: str | None = None
    service: ServiceReference | None = None
    ca_bundle: str | None = None


class RuleWithOperations(ApiStruct):
    operations: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    api_versions: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    scope: str | None = None


class MatchCondition(ApiStruct):
    name: str = ""
    expression: str = ""


class ValidatingWebhook(ApiStruct):
    name: str = ""
    client_config: WebhookClientConfig = field(default_factory=WebhookClientConfig)
    rules: tuple[RuleWithOperations, ...] | None = None
    failure_policy: str | None = None
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    side_effects: str | None = None
    timeout_seconds: int | None = None
    admission_review_versions: tuple[str, ...] | None = None
    match_conditions: tuple[MatchCondition, ...] | None = None


class MutatingWebhook(ValidatingWebhook):
    reinvocation_policy: str | None = None


class ValidatingWebhookConfiguration(ApiObject):
    webhooks: tuple[ValidatingWebhook, ...] | None = None


class MutatingWebhookConfiguration(ApiObject):
    webhooks: tuple[MutatingWebhook, ...] | None = None
