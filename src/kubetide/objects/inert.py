"""Kinds of applications and charts that no scaling decision reads: stored and shown as they are, without effect."""

from __future__ import annotations

from kubetide.objects.meta import ApiObject


class Secret(ApiObject):
    pass


class ServiceAccount(ApiObject):
    pass


class Ingress(ApiObject):
    pass


class IngressClass(ApiObject):
    pass


class NetworkPolicy(ApiObject):
    pass
