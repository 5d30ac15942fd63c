"""ResourceQuotas: how much the pods of a namespace may ask for together.

Source: Kubernetes v1.36, core/v1.
"""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Quantities
from kubetide.objects.meta import ApiObject


class ScopedResourceSelectorRequirement(ApiStruct):
    """One scope, and for priority classes which of them."""

    scope_name: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class ScopeSelector(ApiStruct):
    match_expressions: tuple[ScopedResourceSelectorRequirement, ...] | None = None


class ResourceQuotaSpec(ApiStruct):
    """Which pods count; ``hard`` is read from the status, which has it once the quota is in force."""

    scopes: tuple[str, ...] | None = None
    scope_selector: ScopeSelector | None = None


class ResourceQuotaStatus(ApiStruct):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(ApiObject):
    spec: ResourceQuotaSpec = field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = field(default_factory=ResourceQuotaStatus)
