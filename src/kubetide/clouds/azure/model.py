"""The API's scale sets and machines, as far as the provider reads them (compute 2025-04-01)."""

from __future__ import annotations

from msgspec import field

from kubetide.objects.base import ApiStruct, Json


class Sku(ApiStruct):
    name: str | None = None
    tier: str | None = None
    capacity: int | None = None


class ManagedDisk(ApiStruct):
    storage_account_type: str | None = None


class DiffDisk(ApiStruct):
    option: str | None = None


class OsDisk(ApiStruct):
    disk_size_gb: int | None = field(default=None, name="diskSizeGB")
    diff_disk_settings: DiffDisk | None = None
    managed_disk: ManagedDisk | None = None


class StorageProfile(ApiStruct):
    os_disk: OsDisk | None = None


class OsProfile(ApiStruct):
    windows_configuration: Json | None = None


class MachineProfile(ApiStruct):
    os_profile: OsProfile | None = None
    storage_profile: StorageProfile | None = None
    priority: str | None = None


class SetProperties(ApiStruct):
    orchestration_mode: str | None = None
    virtual_machine_profile: MachineProfile | None = None
    host_group: Json | None = None
    provisioning_state: str | None = None


class ScaleSet(ApiStruct):
    """A VirtualMachineScaleSet."""

    id: str = ""
    name: str = ""
    location: str | None = None
    etag: str | None = None
    sku: Sku | None = None
    zones: tuple[str, ...] | None = None
    tags: dict[str, str | None] | None = None
    extended_location: Json | None = None
    properties: SetProperties = field(default_factory=SetProperties)

    @property
    def is_flexible(self) -> bool:
        return self.properties.orchestration_mode == "Flexible"

    @property
    def is_spot(self) -> bool:
        profile = self.properties.virtual_machine_profile
        return profile is not None and profile.priority == "Spot"


class Status(ApiStruct):
    code: str | None = None
    level: str | None = None
    message: str | None = None


class Extension(ApiStruct):
    name: str | None = None
    statuses: tuple[Status, ...] | None = None


class InstanceView(ApiStruct):
    statuses: tuple[Status, ...] | None = None
    extensions: tuple[Extension, ...] | None = None


class MachineProperties(ApiStruct):
    provisioning_state: str | None = None
    instance_view: InstanceView | None = None


class Machine(ApiStruct):
    """A machine of a scale set, or a single one."""

    id: str = ""
    name: str = ""
    instance_id: str = ""
    properties: MachineProperties = field(default_factory=MachineProperties)
