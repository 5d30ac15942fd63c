"""The objects of resource.k8s.io as a cluster has them."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kubetide.objects.resource import DeviceClass, ResourceClaim, ResourceSlice

ClaimKey = tuple[str, str]
"""Namespace and name."""


class Devices(msgspec.Struct, frozen=True, kw_only=True):
    """All devices of a cluster, and their claims.

    Attributes:
        templates: Slices of nodes that do not exist yet, by the name of the node that they are copied from.
    """

    slices: tuple[ResourceSlice, ...] = ()
    claims: Mapping[ClaimKey, ResourceClaim] = {}
    classes: Mapping[str, DeviceClass] = {}
    templates: Mapping[str, tuple[ResourceSlice, ...]] = {}
