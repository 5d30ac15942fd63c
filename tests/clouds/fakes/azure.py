"""Azure Resource Manager, as its API documentation says: scale sets of one resource group and what scales them."""

from __future__ import annotations

import copy

from tests.clouds.fakes.server import Answer, Asked

SUBSCRIPTION, GROUP = "sub-1", "MC_shop"
_PROVIDERS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}/providers"
_BASE = f"{_PROVIDERS}/Microsoft.Compute"
_SETS = f"{_BASE}/virtualMachineScaleSets"
_AUTOSCALE = f"{_PROVIDERS}/Microsoft.Insights/autoscalesettings"
_SET_KEYS = {
    "name",
    "location",
    "sku",
    "plan",
    "properties",
    "identity",
    "zones",
    "extendedLocation",
    "placement",
    "tags",
}
"""What a set may be created with; Azure sets the rest itself."""
_READ_ONLY = {"provisioningState": "Succeeded", "uniqueId": "u-1", "timeCreated": "2026-03-01T00:00:00Z"}
_STATES = {"Running": "Succeeded", "Creating": "Creating", "Deleting": "Deleting"}


class FakeAzure:
    """The API over a fleet.

    Lists have ``page`` entries a page; ``errors`` are (status, code, headers) to give; ``models`` are the sets that are
    not like the others, by name, whole; those of ``unlisted`` are in no list yet. With ``lists_before`` a list shows
    the sizes that sets had when that was set. Paths that end as in ``broken`` are refused so.
    ``autoscale_settings`` are those of the resource group.
    """

    def __init__(self, fleet, *, page=1, flexible=False, spot=False):
        self.fleet, self.page, self.flexible, self.spot = fleet, page, flexible, spot
        self.errors: list[tuple[int, str, dict[str, str]]] = []
        self.refused_changes: list[tuple[int, str]] = []
        self.operation = ("Succeeded", None)
        self.calls: list[str] = []
        self.failed: set[str] = set()
        self.etag = 1
        self.refused = None
        self.broken: dict[str, tuple[int, str]] = {}
        self.models: dict[str, dict] = {}
        self.unlisted: set[str] = set()
        self.lists_before: dict[str, int] | None = None
        self.polls = 0
        self.skus = [SKU]
        self.autoscale_settings: list[dict] = []

    def __call__(self, asked: Asked) -> Answer:
        assert asked.headers["authorization"] == "Bearer a-token"
        if asked.path.startswith("/operations/"):
            self.polls += 1
            status, error = self.operation
            return Answer({"status": status, "error": error} if error else {"status": status})
        versions = {"2022-10-01"} if asked.path == _AUTOSCALE else {"2025-04-01", "2021-07-01"}
        assert asked.query.get("api-version") in versions, asked.query
        self.calls.append(f"{asked.method} {asked.path.rpartition('/')[2]}")
        if self.refused:
            return _error(*self.refused)
        if asked.path.rpartition("/")[2] in self.broken:
            return _error(*self.broken[asked.path.rpartition("/")[2]])
        if self.errors and asked.method == "GET":
            status, code, headers = self.errors.pop(0)
            return _error(status, code, headers)
        if self.refused_changes and asked.method != "GET":
            return _error(*self.refused_changes.pop(0))
        return self._answer(asked)

    def _answer(self, asked):
        if asked.path == _SETS:
            listed = sorted(self.fleet.groups.keys() - self.unlisted)
            return self._paged([self._listed(name) for name in listed], asked)
        if asked.path == f"{_BASE}/virtualMachines":
            requested = asked.query["$filter"].split("'")[3]
            name = requested.rpartition("/")[2]
            assert requested == f"{_SETS}/{name}"
            return self._paged([self._machine(name, one) for one in self.fleet.machines(name)], asked)
        if asked.path == f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Compute/skus":
            assert asked.query["$filter"] == "location eq 'westeurope'"
            return Answer({"value": self.skus})
        if asked.path == _AUTOSCALE and asked.method == "GET":
            return self._paged(self.autoscale_settings, asked)
        name, _, rest = asked.path.removeprefix(f"{_SETS}/").partition("/")
        if asked.headers.get("if-none-match") == "*":
            assert asked.method == "PUT"
            return self._create(name, asked)
        if name not in self.fleet.groups:
            return _error(404, "ResourceNotFound")
        if asked.method == "DELETE":
            assert not rest
            del self.fleet.groups[name]
            self.models.pop(name, None)
            return Answer({}, 202, {"Azure-AsyncOperation": self._operation_url(asked)})
        if rest == "virtualMachines":
            assert asked.query["$expand"] == "instanceView"
            return self._paged([self._machine(name, one) for one in self.fleet.machines(name)], asked)
        if rest == "delete" and asked.method == "POST":
            assert asked.query["forceDeletion"] in {"true", "false"}
            assert asked.body.keys() == {"instanceIds"}
            for one in asked.body["instanceIds"]:
                self.fleet.end(name, one)
            return Answer({}, 202, {"Azure-AsyncOperation": self._operation_url(asked)})
        assert not rest, asked.path
        if asked.method == "PUT":
            return self._put(name, asked)
        expand = asked.query.get("$expand")
        assert expand in {None, "userData"}
        return Answer(self._set(name, user_data=expand == "userData"))

    def _create(self, name, asked):
        if name in self.fleet.groups:
            return _error(412, "PreconditionFailed")
        body = asked.body
        assert body.keys() <= _SET_KEYS, body.keys()
        assert body["name"] == name
        assert len(name) <= 64
        properties = body["properties"]
        assert not properties.keys() & _READ_ONLY.keys()
        assert len(body.get("zones", ())) > 1 or "zoneBalance" not in properties
        assert not any(set("<>%&\\?/") & set(key) for key in body["tags"])
        system = properties["virtualMachineProfile"]["osProfile"]
        assert system["linuxConfiguration"]["disablePasswordAuthentication"]
        assert 1 <= len(system["computerNamePrefix"]) <= 58
        self.etag += 1
        url = self._operation_url(asked)
        self.models[name] = body
        self.fleet.add(name, running=body["sku"]["capacity"])
        return Answer(self._set(name), 201, {"Azure-AsyncOperation": url})

    def _operation_url(self, asked):
        return f"http://{asked.headers['host']}/operations/{len(self.calls)}"

    def _put(self, name, asked):
        assert asked.body.keys() <= {"name", "location", "sku", "extendedLocation"}
        assert asked.body["location"] == "westeurope"
        if asked.headers.get("if-match", str(self.etag)) != str(self.etag):
            return _error(412, "PreconditionFailed")
        self.etag += 1
        if self.operation[0] == "Succeeded":
            before = {one.name for one in self.fleet.groups[name].machines}
            self.fleet.set_target(name, asked.body["sku"]["capacity"])
            if name in self.fleet.stuck:
                self.failed |= {one.name for one in self.fleet.groups[name].machines} - before
        return Answer(self._set(name), 200, {"Azure-AsyncOperation": self._operation_url(asked)})

    def _paged(self, items, asked):
        start = int(asked.query.get("$skiptoken", "0"))
        end = start + self.page
        if end >= len(items):
            return Answer({"value": items[start:]})
        others = {key: value for key, value in asked.query.items() if key != "$skiptoken"}
        query = "&".join(f"{key}={value}" for key, value in {**others, "$skiptoken": str(end)}.items())
        link = f"http://{asked.headers['host']}{asked.path}?{query}"
        return Answer({"value": items[start:end], "nextLink": link})

    def _listed(self, name):
        found = self._set(name)
        if self.lists_before is not None:
            found["sku"]["capacity"] = self.lists_before[name]
        return found

    def _set(self, name, *, user_data=False):
        if name in self.models:
            return self._shown(name, user_data=user_data)
        profile = {
            "storageProfile": {
                "osDisk": {"diskSizeGB": 128, "managedDisk": {"storageAccountType": "Premium_LRS"}}
            }
        }
        if self.spot:
            profile["priority"] = "Spot"
        return {
            "id": f"{_SETS}/{name}",
            "name": name,
            "location": "westeurope",
            "etag": str(self.etag),
            "sku": {
                "name": "Standard_D4s_v3",
                "tier": "Standard",
                "capacity": self.fleet.groups[name].target,
            },
            "zones": ["1", "2"],
            "tags": {
                "cluster": "shop",
                "min": "0",
                "max": "4",
                "poolName": "np1",
                "k8s.io_cluster-autoscaler_node-template_label_team": "shop",
            },
            "properties": {
                "orchestrationMode": "Flexible" if self.flexible else "Uniform",
                "virtualMachineProfile": profile,
            },
        }

    def _shown(self, name, *, user_data):
        """Return a model as Azure shows it: without what it shows to nobody."""
        model = copy.deepcopy(self.models[name])
        model["sku"]["capacity"] = self.fleet.groups[name].target
        model["properties"] |= _READ_ONLY
        profile = model["properties"]["virtualMachineProfile"]
        for key in ("customData", "adminPassword"):
            profile.get("osProfile", {}).pop(key, None)
        if not user_data:
            profile.pop("userData", None)
        for one in profile.get("extensionProfile", {}).get("extensions", ()):
            one["properties"].pop("protectedSettings", None)
        return {**model, "id": f"{_SETS}/{name}", "name": name, "etag": str(self.etag)}

    def _machine(self, name, machine):
        state = "Failed" if machine.name in self.failed else _STATES[self.fleet.state(machine)]
        properties = {"provisioningState": state}
        if self.flexible:
            return {
                "id": f"{_BASE}/virtualMachines/{machine.name}",
                "name": machine.name,
                "properties": properties,
            }
        power = "PowerState/stopped" if state == "Failed" else "PowerState/running"
        properties["instanceView"] = {"statuses": [{"code": power}]}
        return {
            "id": f"{_SETS}/{name}/virtualMachines/{machine.name}",
            "name": f"{name}_{machine.name}",
            "instanceId": machine.name,
            "properties": properties,
        }


SKU = {
    "name": "Standard_D4s_v3",
    "resourceType": "virtualMachines",
    "capabilities": [
        {"name": "vCPUs", "value": "4"},
        {"name": "MemoryGB", "value": "16"},
        {"name": "CpuArchitectureType", "value": "x64"},
    ],
}


def _error(status, code, headers=None):
    return Answer({"error": {"code": code, "message": code}}, status, headers or {})
