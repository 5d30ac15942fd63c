"""Compute Engine, as its API documentation says: the methods that a provider needs, and nothing else."""

from __future__ import annotations

import re

from tests.clouds.fakes.server import Answer, Asked

ZONE = "us-central1-b"
REGION, ZONES = "us-central1", (ZONE, "us-central1-c")
PROJECT = "shop"
ROOT = "https://www.googleapis.com/compute/v1"
KUBE_ENV = 'AUTOSCALER_ENV_VARS: "node_labels=team=shop;kube_reserved=cpu=60m,memory=960Mi"\n'
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_QUERY = {
    "instanceGroups": {"filter", "pageToken"},
    "instanceGroupManagers": {"pageToken"},
    "listManagedInstances": {"pageToken"},
    "resize": {"size"},
    "instances": {"pageToken"},
    "autoscalers": {"pageToken"},
}


class FakeGce:
    """The API of one project over a fleet, whose groups are of a zone, or of the region.

    Lists have ``page`` entries a page; ``errors`` are (status, reason) to give, ``refused_changes`` by method and
    collection. ``managers`` are what single groups have besides the rest, ``templates`` those that are not the usual one.
    ``statuses`` are those of machines that do something by themselves, by name; ``strangers`` are in a zone's list besides.
    ``autoscalers`` are those of the zone.
    """

    def __init__(self, fleet, page=1, *, regional=False):
        self.fleet, self.page, self.regional = fleet, page, regional
        self.place = ["regions", REGION] if regional else ["zones", ZONE]
        self.errors: list[tuple[int, str]] = []
        self.failed_operation = None
        self.refused = None
        self.waits: dict[str, int] = {}
        self.calls: list[str] = []
        self.attempts: dict[str, list[dict[str, str]]] = {}
        self.managers: dict[str, dict] = {}
        self.templates: dict[str, dict] = {}
        self.refused_changes: dict[str, tuple[int, str]] = {}
        self.statuses: dict[str, str] = {}
        self.strangers: list[dict] = []
        self.autoscalers: list[dict] = []

    def __call__(self, asked: Asked) -> Answer:
        assert asked.headers["authorization"] == "Bearer a-token"
        if self.refused:
            return _error(*self.refused)
        if self.errors and asked.method == "GET":
            status, reason = self.errors.pop(0)
            return _error(status, reason)
        parts = asked.path.removeprefix("/compute/v1/").split("/")
        assert parts[:2] == ["projects", PROJECT], asked.path
        self.calls.append(f"{asked.method} {parts[-1]}")
        return self._answer(asked, parts[2:])

    def _answer(self, asked, parts):
        known = _QUERY.get(parts[-1], set())
        assert set(asked.query) <= known, f"unknown parameters of {parts[-1]}: {asked.query}"
        refused = self.refused_changes.pop(f"{asked.method} {parts[-1]}", None)
        if refused:
            return _error(*refused)
        if parts[:2] == ["global", "instanceTemplates"]:
            return self._template(asked, parts[2:])
        if parts[0] == "global":
            return self._operation(asked, parts[1:])
        if parts[0] == "zones" and parts[1] in ZONES and parts[2] == "machineTypes":
            name = parts[3]
            known = MACHINE_TYPES.get(name)
            return Answer({"name": name, **known}) if known else _error(404, "notFound")
        assert parts[:2] == self.place, parts
        match parts[2:]:
            case ["instanceGroups"]:
                pattern = re.compile(asked.query["filter"].removeprefix("name eq "))
                names = [name for name in sorted(self.fleet.groups) if pattern.fullmatch(name)]
                return self._paged("items", [{"name": name} for name in names], asked)
            case ["instanceGroupManagers"] if asked.method == "POST":
                return self._insert(asked)
            case ["instanceGroupManagers", name] if name in self.fleet.groups and asked.method == "DELETE":
                del self.fleet.groups[name]
                self.managers.pop(name, None)
                return self._begun("delete")
            case ["instanceGroupManagers"]:
                return self._paged(
                    "items", [self._manager(name) for name in sorted(self.fleet.groups)], asked
                )
            case ["instanceGroupManagers", name] if name in self.fleet.groups:
                return Answer(self._manager(name))
            case ["instanceGroupManagers", name, "listManagedInstances"] if (
                name in self.fleet.groups and asked.method == "POST"
            ):
                listed = [self._managed(name, one) for one in self.fleet.machines(name)]
                return self._paged("managedInstances", listed, asked)
            case ["instances"] if not self.regional:
                own = [one for name in sorted(self.fleet.groups) for one in self._listed(name)]
                return self._paged("items", [*self.strangers, *own], asked)
            case ["autoscalers"] if asked.method == "GET":
                return self._paged("items", self.autoscalers, asked)
            case ["instanceGroupManagers", name, verb] if (
                name in self.fleet.groups and asked.method == "POST"
            ):
                return self._change(name, verb, asked)
            case ["operations", _, "wait"]:
                return self._operation(asked, parts[2:])
        return _error(404, "notFound")

    def _operation(self, asked, parts):
        match parts:
            case ["operations", name, "wait"] if asked.method == "POST":
                self.waits[name] = self.waits.get(name, 0) + 1
                done = self.waits[name] > 1
                error = {"error": self.failed_operation} if done and self.failed_operation else {}
                return Answer({"name": name, "status": "DONE" if done else "RUNNING", **error})
        return _error(404, "notFound")

    def _begun(self, verb):
        return Answer({"name": f"operation-{len(self.calls)}", "status": "PENDING", "operationType": verb})

    def _template(self, asked, parts):
        match asked.method, parts:
            case "POST", []:
                body = asked.body
                assert body.keys() == {"name", "description", "properties"}
                assert _NAME.fullmatch(body["name"])
                assert not _keys(body) & {"kind", "fingerprint"}
                items = body["properties"]["metadata"]["items"]
                assert all(re.fullmatch(r"[-_a-zA-Z0-9]{1,128}", one["key"]) for one in items), items
                if body["name"] in self.templates:
                    return _error(409, "alreadyExists")
                self.templates[body["name"]] = body
                return self._begun("insert")
            case "DELETE", [name] if name in self.templates:
                used = {
                    self._manager(one)["instanceTemplate"].rpartition("/")[2] for one in self.fleet.groups
                }
                if name in used:
                    return _error(400, "resourceInUseByAnotherResource")
                del self.templates[name]
                return self._begun("delete")
            case "GET", [name] if name in self.templates:
                return Answer(self.templates[name])
            case "GET", ["shop-template"]:
                return Answer(template())
        return _error(404, "notFound")

    def _insert(self, asked):
        body = asked.body
        name = body["name"]
        assert {"name", "baseInstanceName", "instanceTemplate", "targetSize"} <= body.keys()
        assert not _keys(body) & {"kind", "fingerprint", "zone", "instanceGroup", "currentActions"}
        assert _NAME.fullmatch(name)
        assert len(body["baseInstanceName"]) <= 58
        assert body["instanceTemplate"].startswith(f"projects/{PROJECT}/global/instanceTemplates/")
        assert body["instanceTemplate"].rpartition("/")[2] in self.templates
        if name in self.fleet.groups:
            return _error(409, "alreadyExists")
        self.managers[name] = {key: one for key, one in body.items() if key != "targetSize"}
        self.fleet.add(name, running=body["targetSize"])
        return self._begun("insert")

    def _change(self, name, verb, asked):
        if verb == "createInstances":
            assert set(asked.body) == {"instances"}
            names = [one["name"] for one in asked.body["instances"]]
            assert all(_NAME.fullmatch(one) for one in names), names
            if self.failed_operation is None:
                self.fleet.grow(name, len(names), names)
        elif verb == "deleteInstances":
            assert asked.body.keys() <= {"instances", "skipInstancesOnValidationError"}
            assert asked.body["skipInstancesOnValidationError"] is True
            for url in asked.body["instances"]:
                machine = url.rpartition("/")[2]
                assert url == self._url(machine), url
                self.fleet.end(name, machine)
        else:
            assert verb == "resize", verb
            self.fleet.set_target(name, int(asked.query["size"]))
        return self._begun(verb)

    def _paged(self, key, items, asked):
        start = int(asked.query.get("pageToken", "0"))
        end = start + self.page
        more = {"nextPageToken": str(end)} if end < len(items) else {}
        return Answer({key: items[start:end], **more})

    def _url(self, machine):
        return f"{ROOT}/projects/{PROJECT}/zones/{self.zone_of(machine)}/instances/{machine}"

    def zone_of(self, machine):
        """Return the zone of a machine; a group of the region has them in two."""
        return ZONES[sum(machine.encode()) % 2] if self.regional else ZONE

    def _manager(self, name):
        states = [self.fleet.state(one) for one in self.fleet.machines(name)]
        return {
            "name": name,
            **self._whereabouts(),
            "baseInstanceName": name,
            "instanceTemplate": f"{ROOT}/projects/{PROJECT}/global/instanceTemplates/shop-template",
            "targetSize": self.fleet.groups[name].target,
            "currentActions": {
                "none": states.count("Running"),
                "creating": states.count("Creating"),
                "deleting": states.count("Deleting"),
            },
            **self.managers.get(name, {}),
        }

    def _whereabouts(self):
        root = f"{ROOT}/projects/{PROJECT}"
        if not self.regional:
            return {"zone": f"{root}/zones/{ZONE}"}
        zones = [{"zone": f"{root}/zones/{one}"} for one in reversed(ZONES)]
        return {
            "region": f"{root}/regions/{REGION}",
            "distributionPolicy": {"zones": zones, "targetShape": "EVEN"},
            "updatePolicy": {"type": "OPPORTUNISTIC", "instanceRedistributionType": "NONE"},
        }

    def _managed(self, name, machine):
        action = {"Running": "NONE", "Creating": "CREATING", "Deleting": "DELETING"}[
            self.fleet.state(machine)
        ]
        found = {
            "instance": self._url(machine.name),
            "currentAction": action,
            "instanceStatus": "RUNNING" if action == "NONE" else "",
        }
        errors = self.attempts.get(name)
        return found | ({"lastAttempt": {"errors": {"errors": errors}}} if errors else {})

    def _listed(self, name):
        status = {"Running": "RUNNING", "Creating": "STAGING", "Deleting": "STOPPING"}
        for machine in self.fleet.machines(name):
            maker = f"projects/123/zones/{ZONE}/instanceGroupManagers/{name}"
            yield {
                "selfLink": f"{ROOT}/projects/{PROJECT}/zones/{ZONE}/instances/{machine.name}",
                "status": self.statuses.get(machine.name, status[self.fleet.state(machine)]),
                "metadata": {"items": [{"key": "created-by", "value": maker}]},
            }


MACHINE_TYPES = {
    "e2-standard-2": {"guestCpus": 2, "memoryMb": 8192, "architecture": "X86_64"},
    "e2-standard-4": {"guestCpus": 4, "memoryMb": 16384, "architecture": "X86_64"},
    "e2-standard-16": {"guestCpus": 16, "memoryMb": 65536, "architecture": "X86_64"},
    "t2a-standard-16": {"guestCpus": 16, "memoryMb": 65536, "architecture": "ARM64"},
    "g2-standard-16": {
        "guestCpus": 16,
        "memoryMb": 65536,
        "accelerators": [{"guestAcceleratorType": "nvidia-l4", "guestAcceleratorCount": 1}],
    },
}


def _keys(value):
    """Return all keys of an object, all the way down, but those that owners of labels choose."""
    if isinstance(value, list):
        return set().union(*map(_keys, value))
    if isinstance(value, dict):
        parts = [one for key, one in value.items() if key != "labels"]
        return value.keys() | set().union(*map(_keys, parts))
    return set()


def template():
    return {
        "name": "shop-template",
        "properties": {
            "machineType": "e2-standard-4",
            "disks": [{"boot": True, "initializeParams": {"diskSizeGb": "100", "diskType": "pd-balanced"}}],
            "metadata": {"items": [{"key": "kube-env", "value": KUBE_ENV}]},
        },
    }


def _error(status, reason):
    body = {"code": status, "message": reason, "errors": [{"reason": reason, "message": reason}]}
    return Answer({"error": body}, status)
