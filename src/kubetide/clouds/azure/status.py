"""In which state a machine is, and why one failed.

Source: cluster-autoscaler cloudprovider/azure, instance status of scale sets.
"""

from __future__ import annotations

from typing import NamedTuple

from kubetide.clouds.azure.model import InstanceView, Machine
from kubetide.ports.cloud import InstanceError, InstanceState

_KNOWN_POWER = {
    "PowerState/deallocated",
    "PowerState/deallocating",
    "PowerState/running",
    "PowerState/starting",
    "PowerState/stopped",
    "PowerState/stopping",
    "PowerState/unknown",
}
_UP = {"PowerState/running", "PowerState/starting"}
_FAILED = InstanceError(
    error_class="OutOfResource",
    error_code="provisioning-state-failed",
    error_message="Azure failed to provision a node for this node group",
    cause="OutOfCapacity",
)
EXTENSION = "vmssCSE"


class VmStatus(NamedTuple):
    """A machine's state, None where it is unknown (it counts as running), and its error."""

    state: InstanceState | None
    error: InstanceError | None = None


class StatusRules(NamedTuple):
    """The switches that decide what a failed machine means."""

    fast_delete: bool = False
    detailed_cse: bool = False


def machine_status(machine: Machine, rules: StatusRules, known: VmStatus | None = None) -> VmStatus:
    """Return the status of a machine of a uniform set.

    Args:
        machine: With its instance view, where there is one.
        rules: What is switched on.
        known: The last known status; it stays while the machine is updated.
    """
    properties = machine.properties
    view = properties.instance_view
    if properties.provisioning_state in {None, "", "Updating"}:
        return known or VmStatus(None)
    status = provisioned(properties.provisioning_state or "", power_of(view), rules)
    failures = _extension_errors(view) if rules.detailed_cse else []
    if failures:
        return VmStatus(
            "Creating",
            InstanceError(
                error_class="Other",
                error_code="VMExtensionProvisioningFailed",
                error_message=f"{machine.name}: [{' '.join(failures)}]",
            ),
        )
    return status


def provisioned(state: str, power: str, rules: StatusRules) -> VmStatus:
    """Return what a provisioning state means for a machine with that power state."""
    if state == "Deleting":
        return VmStatus("Deleting")
    if state == "Creating":
        return VmStatus("Creating")
    if state == "Failed" and rules.fast_delete and power not in _UP:
        return VmStatus("Creating", _FAILED)
    return VmStatus("Running")


def power_of(view: InstanceView | None) -> str:
    """Return the power state that a view says; a machine without a view counts as running."""
    if view is None:
        return "PowerState/running"
    codes = (one.code or "" for one in view.statuses or ())
    return next((code for code in codes if code in _KNOWN_POWER), "PowerState/unknown")


def _extension_errors(view: InstanceView | None) -> list[str]:
    extensions = (view.extensions if view else None) or ()
    return [
        status.message or ""
        for one in extensions
        if (one.name or "").lower() == EXTENSION.lower()
        for status in one.statuses or ()
        if status.level == "Error"
    ]
