"""Unknown values in the parameters of a ProvisioningRequest.

Source: Cluster Autoscaler, provisioningrequest/checkcapacity: it logs such a value, and serves the request as without it.
"""

from __future__ import annotations

from typing import Final

from kubetide.nodes.capacity.provisioning.conditions import has_ended, is_check_capacity
from kubetide.nodes.capacity.provisioning.names import (
    BOOK_PARTIAL,
    CHECK_ONLY,
    NO_RETRY,
    PARTIAL_CHECK,
    PROVISIONED,
)
from kubetide.nodes.settings import Settings
from kubetide.objects.capacity import ProvisioningRequest, is_true

_VALUES: Final = {NO_RETRY: ("true", "false"), PARTIAL_CHECK: (BOOK_PARTIAL, CHECK_ONLY)}


def unread_parameters(request: ProvisioningRequest, settings: Settings) -> str:
    """Return what is wrong with the parameters of a request that waits, and what to do; empty for nothing."""
    waits = not has_ended(request) and not is_true(request.status.conditions, PROVISIONED)
    if not waits or not is_check_capacity(request, settings.check_capacity_processor_instance):
        return ""
    parameters = request.spec.parameters or {}
    found = [
        f'spec.parameters[{name}]: "{parameters[name]}" is neither "{first}" nor "{second}"'
        for name, (first, second) in _VALUES.items()
        if parameters.get(name, first) not in (first, second)
    ]
    if not found:
        return ""
    return f"{'; '.join(found)}; the request is served as without it, until it is replaced by one with such a value"
