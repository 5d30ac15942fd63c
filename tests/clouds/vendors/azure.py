"""Azure, as the tests of all vendors need it."""

from __future__ import annotations

from contextlib import contextmanager

from tests.clouds.fakes.azure import GROUP, SUBSCRIPTION, FakeAzure
from tests.clouds.vendors.vendor import Vendor, token

from kubetide.clouds.azure.api import ComputeApi, Subscription, refusal
from kubetide.clouds.azure.cloud import AzureCloud
from kubetide.clouds.azure.discovery import parse_discovery
from kubetide.clouds.azure.settings import AzureSettings
from kubetide.units.time import minutes

LARGE = "auto-workers-Standard_D16s_v3-westeurope"
PREFIX = "k8s.io_cluster-autoscaler_node-template_"
PROFILE = "properties__virtualMachineProfile"


def model(name, sizes):
    """Return a set over two zones whose machines join by user data, as Azure describes it."""
    network = (
        f"/subscriptions/{SUBSCRIPTION}/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v"
    )
    return {
        "name": name,
        "location": "westeurope",
        "sku": {"name": "Standard_D2s_v3", "tier": "Standard", "capacity": 0},
        "zones": ["1", "2"],
        "identity": {
            "type": "UserAssigned",
            "userAssignedIdentities": {"/identities/nodes": {"principalId": "p", "clientId": "c"}},
        },
        "tags": {
            "cluster": "shop",
            "min": "0",
            "max": "4",
            "kubetide.dev_create": sizes,
            f"{PREFIX}label_team": "shop",
            f"{PREFIX}taint_dedicated": "shop:NoSchedule",
            f"{PREFIX}resources_ephemeral-storage": "100Gi",
            f"{PREFIX}resources_nvidia.com_gpu": "1",
        },
        "properties": {
            "orchestrationMode": "Uniform",
            "singlePlacementGroup": False,
            "zoneBalance": True,
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "userData": "am9pbg==",
                "timeCreated": "2026-03-01T00:00:00Z",
                "osProfile": {
                    "computerNamePrefix": "workers",
                    "adminUsername": "shop",
                    "linuxConfiguration": {
                        "disablePasswordAuthentication": True,
                        "ssh": {"publicKeys": [{"path": "/home/shop/.ssh/authorized_keys", "keyData": "k"}]},
                    },
                },
                "storageProfile": {
                    "osDisk": {"diskSizeGB": 128, "createOption": "FromImage"},
                    "imageReference": {
                        "publisher": "Canonical",
                        "offer": "ubuntu",
                        "sku": "server",
                        "version": "latest",
                        "exactVersion": "24.04.1",
                    },
                },
                "networkProfile": {
                    "networkInterfaceConfigurations": [
                        {
                            "name": "nic",
                            "properties": {"primary": True, "subnet": {"id": f"{network}/subnets/s"}},
                        }
                    ]
                },
                "extensionProfile": {
                    "extensions": [
                        {
                            "name": "health",
                            "id": "/extensions/health",
                            "properties": {
                                "publisher": "Microsoft.ManagedServices",
                                "type": "ApplicationHealthLinux",
                                "typeHandlerVersion": "1.0",
                                "settings": {"port": 10250},
                                "provisioningState": "Succeeded",
                            },
                        }
                    ]
                },
            },
        },
    }


class Azure(Vendor):
    """Scale sets; with ``discovery`` none is named. ``settings`` are the provider's."""

    shown_s = 0
    patience = minutes(15)
    refusal = staticmethod(refusal)
    refused_as = (("Throttled", (429, "TooManyRequests")), ("Permission", (403, "AuthorizationFailed")))
    order = "PUT web"
    refused_orders = (
        ("AllocationFailed", "OutOfCapacity"),
        ("QuotaExceeded", "Quota"),
        ("AuthorizationFailed", "Permission"),
        ("TooManyRequests", "Throttled"),
    )
    at_rest = ("GET virtualMachineScaleSets",)

    types = "Standard_D16s_v3 Standard_E4s_v3"
    large = LARGE
    candidates = tuple(
        f"auto-workers-Standard_{size}-westeurope-{zone}" for size in ("D16s_v3", "E4s_v3") for zone in "12"
    )
    meant, meant_zone = f"{LARGE}-2", "westeurope-2"
    called = "a scale set"
    mark = "tag kubetide.dev_create"
    has_source_of_its_own = False
    begins = LARGE
    obstacles = (
        ({f"{PROFILE}__userData": None, f"{PROFILE}__storageProfile__imageReference": {"id": "/i"}}, ""),
        ({f"{PROFILE}__userData": None}, "neither user data nor an image of your own"),
        ({"tags__aks-managed-poolName": "np1"}, "AKS manages it"),
        ({"identity": {"type": "SystemAssigned", "principalId": "p"}}, "user-assigned identity"),
        ({f"{PROFILE}__osProfile__linuxConfiguration": {}}, "have a password"),
        (
            {
                f"{PROFILE}__osProfile__windowsConfiguration": {},
                f"{PROFILE}__osProfile__linuxConfiguration": None,
            },
            "password",
        ),
        ({"properties__hostGroup": {"id": "/h"}}, "dedicated hosts"),
        ({f"{PROFILE}__hardwareProfile": {"vmSizeProperties": {"vCPUsAvailable": 2}}}, "part of their size"),
        ({f"{PROFILE}__billingProfile": {"maxPrice": -1}}, ""),
        ({f"{PROFILE}__billingProfile": {"maxPrice": 0.2}}, "maximum price"),
        ({"properties__skuProfile": {"vmSizes": []}}, "mixes sizes"),
        (
            {f"{PROFILE}__capacityReservation": {"capacityReservationGroup": {"id": "/c"}}},
            "capacity reservation",
        ),
        (
            {
                f"{PROFILE}__extensionProfile": {
                    "extensions": [{"name": "cse", "properties": {"type": "CustomScript"}}]
                }
            },
            "protected settings",
        ),
    )
    useless = (
        ("Standard_Huge", "is not known; correct it"),
        ("Standard_D16ps_v5", "is left out: it is arm64, and the pattern's machines are amd64"),
    )
    pattern_at_rest = ("GET virtualMachineScaleSets",)
    parts_for_the_loop = (("tags", {"kubetide.dev_create": "Standard_D16s_v3"}),)

    def __init__(self, *, discovery="", flexible=False, spot=False, fleet=None, boot_s=5, page=1, **settings):
        super().__init__(fleet=fleet, boot_s=boot_s, page=page, flexible=flexible, spot=spot)
        self.discovery = (parse_discovery(discovery),) if discovery else ()
        self.settings = {"flexible": flexible, **settings}
        self.warnings: list[str] = []

    def make_fake(self, page, **how):
        return FakeAzure(self.fleet, page=page, **how)

    def provider(self, rest, address, nodes):
        api = ComputeApi(rest, self.clock, token, Subscription(SUBSCRIPTION, GROUP, address))
        settings = AzureSettings(nodes=nodes, discovery=self.discovery, **self.settings)
        return AzureCloud(api, settings, self.clock, warn=self.warnings.append)

    def make_pattern(self, types, **parts):
        """Make a set a pattern with some of its parts replaced; a path's steps are separated by two underscores."""
        made = self.fake.models[self.workers] = model(self.workers, types)
        for path, value in parts.items():
            *steps, last = path.split("__")
            part = made
            for step in steps:
                part = part[step]
            part[last] = value

    def lose_mark(self):
        del self.fake.models[self.workers]["tags"]["kubetide.dev_create"]
        self.fake.etag += 1

    def there(self):
        return set(self.fleet.groups)

    def created(self, group_id):
        return group_id

    def hide(self, group_id):
        self.fake.unlisted.add(group_id)

    @contextmanager
    def taken(self, group_id):
        self.fleet.add(group_id)
        self.fake.models[group_id] = {**model(group_id, ""), "tags": {}}
        yield
        del self.fleet.groups[group_id]

    def refuse_order(self, code):
        self.fake.refused_changes = [(409, code)]

    def throttle(self):
        self.fake.errors = [(429, "TooManyRequests", {})]

    def refused_creations(self):
        self.fake.operation = ("Failed", {"code": "SkuNotAvailable", "message": "not in this zone"})
        yield "SkuNotAvailable", "OutOfCapacity"
        self.fake.operation = ("Succeeded", None)
        self.fake.refused_changes = [(403, "AuthorizationFailed")]
        yield "AuthorizationFailed", "Permission"

    def node_id(self, group, machine):
        base = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP.lower()}/providers/Microsoft.Compute"
        scale_set = "" if self.fake.flexible else f"/virtualMachineScaleSets/{group}"
        return f"azure://{base}{scale_set}/virtualMachines/{machine}"

    async def run_out(self, group):
        self.fleet.stuck.add(group)
