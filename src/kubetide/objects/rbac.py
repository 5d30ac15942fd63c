"""rbac.authorization.k8s.io/v1: who may do what."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct
from kubetide.objects.meta import ApiObject, LabelSelector


class PolicyRule(ApiStruct):
    verbs: tuple[str, ...] | None = None
    api_groups: tuple[str, ...] | None = None
    resources: tuple[str, ...] | None = None
    resource_names: tuple[str, ...] | None = None
    non_resource_urls: tuple[str, ...] | None = None


class AggregationRule(ApiStruct):
    cluster_role_selectors: tuple[LabelSelector, ...] | None = None


class Subject(ApiStruct):
    kind: str = ""
    name: str = ""
    namespace: str = ""
    api_group: str = ""


class RoleRef(ApiStruct):
    kind: str = ""
    name: str = ""
    api_group: str = ""


class Role(ApiObject):
    rules: tuple[PolicyRule, ...] | None = None


class ClusterRole(Role):
    aggregation_rule: AggregationRule | None = None


class RoleBinding(ApiObject):
    subjects: tuple[Subject, ...] | None = None
    role_ref: RoleRef = field(default_factory=RoleRef)


class ClusterRoleBinding(RoleBinding):
    pass
