"""The API's objects, as far as the provider reads them (ess 2014-08-28, ecs 2014-05-26)."""

from __future__ import annotations

import msgspec


class _Object(msgspec.Struct, frozen=True, rename="pascal", kw_only=True):
    """Base of the API's objects, whose names begin with a capital letter."""


class ScalingGroup(_Object, frozen=True):
    scaling_group_id: str = ""
    active_scaling_configuration_id: str = ""
    enable_desired_capacity: bool = False
    desired_capacity: int = 0
    active_capacity: int = 0
    pending_capacity: int = 0
    init_capacity: int = 0
    region_id: str = ""

    @property
    def size(self) -> int:
        """The desired capacity; where that is off, what runs, waits or is being made."""
        if self.enable_desired_capacity:
            return self.desired_capacity
        return self.active_capacity + self.pending_capacity + self.init_capacity


class Tag(_Object, frozen=True):
    key: str = ""
    value: str = ""


class Tags(_Object, frozen=True):
    tag: tuple[Tag, ...] | None = None


class ScalingConfiguration(_Object, frozen=True):
    scaling_configuration_id: str = ""
    instance_type: str = ""
    spot_strategy: str = ""
    tags: Tags | None = None


class ScalingInstance(_Object, frozen=True):
    instance_id: str = ""
    scaling_group_id: str = ""
    lifecycle_state: str = ""


class InstanceType(_Object, frozen=True):
    instance_type_id: str = ""
    cpu_core_count: int = 0
    memory_size: float = 0
    gpu_amount: int = msgspec.field(default=0, name="GPUAmount")
