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


class ImageReference(ApiStruct):
    """An image; those of the marketplace have no id."""

    id: str | None = None
    shared_gallery_image_id: str | None = None
    community_gallery_image_id: str | None = None


class StorageProfile(ApiStruct):
    os_disk: OsDisk | None = None
    image_reference: ImageReference | None = None


class LinuxConfiguration(ApiStruct):
    disable_password_authentication: bool | None = None


class OsProfile(ApiStruct):
    windows_configuration: Json | None = None
    linux_configuration: LinuxConfiguration | None = None


class SetExtensionProperties(ApiStruct):
    type: str | None = None
    settings: Json | None = None
    protected_settings_from_key_vault: Json | None = None


class SetExtension(ApiStruct):
    """An extension that each machine of a set gets; its protected settings are never read."""

    name: str | None = None
    properties: SetExtensionProperties = field(default_factory=SetExtensionProperties)


class ExtensionProfile(ApiStruct):
    extensions: tuple[SetExtension, ...] | None = None


class BillingProfile(ApiStruct):
    """What a spot machine may cost an hour; -1 is as much as one on demand."""

    max_price: float | None = None


class MachineProfile(ApiStruct):
    os_profile: OsProfile | None = None
    storage_profile: StorageProfile | None = None
    priority: str | None = None
    extension_profile: ExtensionProfile | None = None
    capacity_reservation: Json | None = None
    hardware_profile: Json | None = None
    billing_profile: BillingProfile | None = None
    user_data: str | None = None


class SetProperties(ApiStruct):
    orchestration_mode: str | None = None
    virtual_machine_profile: MachineProfile | None = None
    host_group: Json | None = None
    sku_profile: Json | None = None


class Identity(ApiStruct):
    """As whom the machines of a set sign in."""

    type: str | None = None
    user_assigned_identities: Json | None = None


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
    identity: Identity | None = None
    properties: SetProperties = field(default_factory=SetProperties)

    @property
    def size(self) -> str:
        """The size of its machines; empty where it says none."""
        return (self.sku and self.sku.name) or ""

    @property
    def capacity(self) -> int | None:
        return self.sku.capacity if self.sku else None

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
