"""The API's objects, as far as the provider reads them (ess 2014-08-28, ecs 2014-05-26)."""

from __future__ import annotations

import msgspec

from kubetide.clouds.common.entries import check_amounts
from kubetide.objects.base import Json
from kubetide.ports.errors import CloudError


class _Object(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    """Base of the API's objects, whose names begin with a capital letter."""


class VSwitchIds(_Object, frozen=True):
    v_switch_id: tuple[str, ...] | None = None


class SuspendedProcesses(_Object, frozen=True):
    suspended_process: tuple[str, ...] | None = None


class ScalingGroup(_Object, frozen=True):
    scaling_group_id: str = ""
    scaling_group_name: str = ""
    group_type: str = ""
    lifecycle_state: str = ""
    suspended_processes: SuspendedProcesses | None = None
    max_size: int = 0
    v_switch_ids: VSwitchIds | None = None
    active_scaling_configuration_id: str = ""
    enable_desired_capacity: bool = False
    desired_capacity: int | None = None
    active_capacity: int | None = None
    pending_capacity: int = 0
    init_capacity: int = 0

    @property
    def vswitches(self) -> tuple[str, ...]:
        """The ids of its vSwitches."""
        return (self.v_switch_ids.v_switch_id if self.v_switch_ids else None) or ()

    @property
    def size(self) -> int:
        """The desired capacity; where that is off, what runs, waits or is being made. Raises CloudError.

        A size that the API does not say is not 0: an increase of it would end the machines that there are.
        """
        size = self.desired_capacity if self.enable_desired_capacity else self.active_capacity
        if size is None:
            raise CloudError(
                f"Alibaba Cloud does not say the capacity of scaling group {self.scaling_group_id}"
            )
        return size if self.enable_desired_capacity else size + self.pending_capacity + self.init_capacity

    def has_process(self, process: str) -> bool:
        """Return whether a process such as ``AlarmNotification`` runs in it: none does in a group that is disabled."""
        suspended = (self.suspended_processes.suspended_process if self.suspended_processes else None) or ()
        return self.lifecycle_state != "Inactive" and process not in suspended


class ScalingRule(_Object, frozen=True):
    """What can change a group's size; ``scaling_rule_ari`` is what alarms and scheduled tasks call it."""

    scaling_rule_ari: str = ""
    scaling_rule_name: str = ""
    scaling_rule_type: str = ""
    scaling_group_id: str = ""
    predictive_scaling_mode: str = ""


class AlarmActions(_Object, frozen=True):
    alarm_action: tuple[str, ...] | None = None


class Alarm(_Object, frozen=True):
    """An event-triggered task: it watches a group, and executes scaling rules."""

    name: str = ""
    enable: bool = True
    scaling_group_id: str = ""
    alarm_actions: AlarmActions | None = None

    @property
    def actions(self) -> tuple[str, ...]:
        """The rules that it executes, by ari."""
        return (self.alarm_actions.alarm_action if self.alarm_actions else None) or ()


class ScheduledTask(_Object, frozen=True):
    """What executes a scaling rule, the ``scheduled_action``, or sets the sizes of a group.

    It does so at ``launch_time``; where it has a ``recurrence_type``, again and again until ``recurrence_end_time``.
    """

    scheduled_task_name: str = ""
    task_enabled: bool = True
    scheduled_action: str = ""
    scaling_group_id: str = ""
    launch_time: str = ""
    recurrence_type: str = ""
    recurrence_value: str = ""
    recurrence_end_time: str = ""


class Tag(_Object, frozen=True):
    key: str = ""
    value: str = ""


class Tags(_Object, frozen=True):
    tag: tuple[Tag, ...] | None = None


class ScalingConfiguration(_Object, frozen=True):
    scaling_configuration_id: str = ""
    instance_type: str = ""
    spot_strategy: str = ""
    user_data: str = ""
    host_name: str = ""
    dedicated_host_id: str = ""
    dedicated_host_cluster_id: str = ""
    network_interfaces: Json | None = None
    tags: Tags | None = None

    @property
    def listed_tags(self) -> tuple[Tag, ...]:
        """Its tags."""
        return (self.tags.tag if self.tags else None) or ()

    def tag(self, key: str) -> str | None:
        """Return the value of a tag, None without it."""
        return next((one.value for one in self.listed_tags if one.key == key), None)


class ScalingInstance(_Object, frozen=True):
    instance_id: str = ""


class VSwitch(_Object, frozen=True):
    zone_id: str = ""


class InstanceType(_Object, frozen=True):
    instance_type_id: str = ""
    cpu_core_count: int = 0
    cpu_architecture: str = ""
    memory_size: float = 0
    gpu_amount: int = msgspec.field(default=0, name="GPUAmount")

    def __post_init__(self) -> None:
        check_amounts(self.cpu_core_count, self.memory_size)
