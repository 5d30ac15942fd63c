"""Compute Engine, as the tests of all vendors need it."""

from __future__ import annotations

from contextlib import contextmanager

from tests.clouds.fakes.gce import KUBE_ENV, PROJECT, REGION, ROOT, ZONE, FakeGce
from tests.clouds.vendors.vendor import Vendor, token

from kubetide.clouds.gce.api import ComputeApi, refusal
from kubetide.clouds.gce.cloud import GceCloud
from kubetide.clouds.gce.settings import GceSettings, parse_discoveries

LARGE = f"auto-workers-e2-standard-16-{ZONE}"


def url(name, place=f"zones/{ZONE}"):
    return f"{ROOT}/projects/{PROJECT}/{place}/instanceGroups/{name}"


def template(types, machine_type="e2-standard-2", **properties):
    """Return an instance template that marks its groups as patterns, as the API describes it."""
    return {
        "kind": "compute#instanceTemplate",
        "name": "workers-v1",
        "description": "made by hand",
        "properties": {
            "machineType": machine_type,
            "disks": [
                {
                    "kind": "compute#attachedDisk",
                    "boot": True,
                    "initializeParams": {"diskSizeGb": "100", "diskType": "pd-balanced"},
                }
            ],
            "networkInterfaces": [{"name": "nic0", "network": "global/networks/shop"}],
            "tags": {"items": ["shop-node"], "fingerprint": "f"},
            "metadata": {
                "kind": "compute#metadata",
                "fingerprint": "f",
                "items": [
                    {"key": "kube-env", "value": KUBE_ENV},
                    {"key": "startup-script", "value": "join"},
                    {"key": "kubetide-create", "value": types},
                ],
            },
            **properties,
        },
    }


def template_url(name):
    return f"{ROOT}/projects/{PROJECT}/global/instanceTemplates/{name}"


class Gce(Vendor):
    """Managed instance groups, of a zone or ``regional``; with ``discovery`` none is named, in ``bulk`` instances are listed by zone."""

    refusal = staticmethod(refusal)
    refused_as = (("Throttled", (429, "rateLimitExceeded")), ("Permission", (403, "forbidden")))
    order = "POST createInstances"
    refused_orders = (
        ("quotaExceeded", "Quota"),
        ("forbidden", "Permission"),
        ("rateLimitExceeded", "Throttled"),
    )
    at_rest = ("GET instanceGroupManagers", *["POST listManagedInstances"] * 2)

    types = "e2-standard-16 e2-standard-4"
    large = url(LARGE)
    candidates = (large, url(f"auto-workers-e2-standard-4-{ZONE}"))
    meant, meant_zone = large, ZONE
    called = "a managed instance group"
    mark = "metadata item kubetide-create"
    has_source_of_its_own = False
    begins = LARGE
    obstacles = (
        ({"manager": {"name": "gke-shop-pool-grp"}}, "GKE manages it"),
        ({"labels": {"goog-gke-node": ""}}, "GKE manages it"),
        ({"manager": {"statefulPolicy": {}, "instanceFlexibilityPolicy": {}}}, ""),
        ({"manager": {"statefulPolicy": {"preservedState": {"disks": {"d": {}}}}}}, "keeps the state"),
        (
            {"manager": {"instanceFlexibilityPolicy": {"instanceSelections": {"s": {}}}}},
            "several machine types",
        ),
        (
            {"guestAccelerators": [{"acceleratorType": "nvidia-tesla-t4", "acceleratorCount": 1}]},
            "accelerators",
        ),
        ({"disks": [{"type": "SCRATCH"}]}, "local SSDs"),
        ({"minCpuPlatform": "Intel Ice Lake"}, "its machines are of one CPU platform"),
        ({"reservationAffinity": {"consumeReservationType": "SPECIFIC_RESERVATION"}}, "reservation"),
        ({"scheduling": {"automaticRestart": True}, "advancedMachineFeatures": {"threadsPerCore": 1}}, ""),
        ({"scheduling": {"nodeAffinities": [{"key": "k", "operator": "IN"}]}}, "sole-tenant nodes"),
        ({"advancedMachineFeatures": {"visibleCoreCount": 2}}, "part of their type's CPUs"),
    )
    useless = (
        ("e9-huge", "is not known; correct it"),
        ("g2-standard-16", "is left out: it has GPUs, which kube-env does not say"),
        ("t2a-standard-16", "is left out: it is ARM64, and the pattern's machines are X86_64"),
    )
    pattern_at_rest = ("GET instanceGroupManagers", "POST listManagedInstances")

    def __init__(self, *, bulk=False, discovery=(), regional=False, **how):
        self.regional = regional
        super().__init__(**how)
        self.bulk, self.discovery = bulk, parse_discoveries(discovery)

    def make_fake(self, page):
        return FakeGce(self.fleet, page, regional=self.regional)

    def id_of(self, name):
        return url(name, f"regions/{REGION}") if self.regional else url(name)

    def provider(self, rest, address, nodes):
        api = ComputeApi(rest, self.clock, token, PROJECT, root=f"{address}/compute/v1")
        settings = GceSettings(
            project=PROJECT, location=ZONE, nodes=nodes, discovery=self.discovery, bulk_listing=self.bulk
        )
        return GceCloud(api, settings, self.clock, seed=7)

    def make_pattern(self, types, *, manager=None, **properties):
        """Make a group a pattern whose machines join by metadata, as the API describes it."""
        self.fake.templates["workers-v1"] = template(types, **properties)
        self.fake.managers[self.workers] = {
            "instanceTemplate": template_url("workers-v1"),
            "autoHealingPolicies": [{"healthCheck": "h", "initialDelaySec": 300}],
            "fingerprint": "f",
            **(manager or {}),
        }

    def lose_mark(self):
        self.fake.templates["workers-v2"] = template("")
        self.fake.managers[self.workers]["instanceTemplate"] = template_url("workers-v2")

    def there(self):
        return set(self.fleet.groups), set(self.fake.templates)

    def created(self, group_id):
        return group_id.rpartition("/")[2]

    @contextmanager
    def taken(self, group_id):
        self.fleet.add(self.created(group_id))
        yield
        del self.fleet.groups[self.created(group_id)]

    def refuse_order(self, code):
        self.fake.refused_changes = {self.order: (403, code)}

    def throttle(self):
        self.fake.errors = [(429, "rateLimitExceeded"), (503, "backendError")]

    def refused_creations(self):
        self.fake.refused_changes = {"POST instanceGroupManagers": (403, "forbidden")}
        yield "forbidden", "Permission"

    def node_id(self, _group, machine):
        return f"gce://{PROJECT}/{self.fake.zone_of(machine)}/{machine}"

    async def run_out(self, group):
        name = self.created(group)
        self.fleet.stuck.add(name)
        self.fake.attempts[name] = [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none left"}]
