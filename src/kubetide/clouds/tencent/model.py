"""The API's objects, as far as the provider reads them (as 2018-04-19, cvm and vpc 2017-03-12)."""

from __future__ import annotations

import msgspec

from kubetide.clouds.common.entries import check_amounts


class _Object(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    """Base of the API's objects, whose names begin with a capital letter."""


class Tag(_Object, frozen=True):
    key: str = ""
    value: str = ""


class Index(_Object, frozen=True):
    """Numbers at the end of names."""

    enabled: bool = False


class Group(_Object, frozen=True):
    """An Auto Scaling group."""

    auto_scaling_group_id: str = ""
    auto_scaling_group_name: str = ""
    enabled_status: str = ""
    max_size: int = 0
    host_name_index_settings: Index | None = None
    launch_configuration_id: str = ""
    desired_capacity: int | None = None
    subnet_id_set: tuple[str, ...] | None = None
    tags: tuple[Tag, ...] | None = None

    @property
    def subnets(self) -> tuple[str, ...]:
        """The ids of its subnets."""
        return self.subnet_id_set or ()

    @property
    def is_enabled(self) -> bool:
        """Whether Auto Scaling executes policies and scheduled actions of it (ENABLED, DISABLED)."""
        return self.enabled_status != "DISABLED"


class ScalingPolicy(_Object, frozen=True):
    """What changes a group's size by an alarm (SIMPLE), or keeps a metric at a value (TARGET_TRACKING)."""

    auto_scaling_group_id: str = ""
    scaling_policy_name: str = ""
    scaling_policy_type: str = "SIMPLE"


class ScheduledAction(_Object, frozen=True):
    """What changes a group's size at a time, or by a cron expression from ``start_time`` until ``end_time``."""

    auto_scaling_group_id: str = ""
    scheduled_action_name: str = ""
    recurrence: str = ""
    start_time: str = ""
    end_time: str = ""


class LaunchConfiguration(_Object, frozen=True):
    launch_configuration_id: str = ""
    launch_configuration_name: str = ""
    instance_type: str = ""
    instance_charge_type: str = ""
    user_data: str | None = None
    dedicated_cluster_id: str | None = None
    hpc_cluster_id: str | None = None
    tags: tuple[Tag, ...] | None = None


class Instance(_Object, frozen=True):
    instance_id: str = ""
    life_cycle_state: str = ""
    zone: str = ""


class InstanceType(_Object, frozen=True):
    instance_type: str = ""
    cpu: int = msgspec.field(default=0, name="CPU")
    memory: int = 0
    gpu: float = msgspec.field(default=0, name="GPU")

    def __post_init__(self) -> None:
        check_amounts(self.cpu, self.memory)


class Subnet(_Object, frozen=True):
    zone: str = ""


class Zone(_Object, frozen=True):
    zone: str = ""
    zone_id: str = ""
