"""Server-side apply: owners of fields, conflicts, and what an apply takes away."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.patches.shapes import shape_of
from kubetide.embedded.apiserver.store import Options, Request, Rest, Store
from kubetide.embedded.apiserver.store.fields import from_fields_v1, text_of, to_fields_v1, values_in
from kubetide.objects.kinds import CONFIG_MAPS, DEPLOYMENTS, PODS
from kubetide.ports.errors import BadRequest, Conflict, Invalid
from kubetide.testing import builders
from kubetide.units.time import after, format_rfc3339, parse_rfc3339, seconds

START = parse_rfc3339("2026-03-02T08:00:00Z")


class Clock:
    def __init__(self):
        self.time = START

    def now(self):
        return self.time


class World:
    def __init__(self):
        self.clock = Clock()
        self.rest = Rest(Store(), self.clock, seed=1)

    def send(self, verb, kind, name="", body=None, subresource="", **options):
        request = Request(verb, kind, "default", name, subresource, Options(**options), body)
        response = self.rest.handle(request)
        self.code = response.code
        return response.object.json

    def apply(self, kind, body, manager="a", *, subresource="", **options):
        name = body["metadata"]["name"]
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return self.send(
            "patch", kind, name, body, subresource, patch_type="apply", field_manager=manager, **options
        )


@pytest.fixture
def world():
    return World()


def owned(json, manager, operation="Apply", subresource=""):
    for entry in json["metadata"].get("managedFields", ()):
        if (entry["manager"], entry["operation"], entry.get("subresource", "")) == (
            manager,
            operation,
            subresource,
        ):
            return {text_of(path) for path in from_fields_v1(entry["fieldsV1"])}
    return set()


def config_map(data, **metadata):
    return {"metadata": {"name": "c", **metadata}, "data": data}


def deployment(**spec):
    return {"metadata": {"name": "web"}, "spec": spec}


def web(image="app:1", **spec):
    body = builders.deployment("web", replicas=2)
    container = {**body["spec"]["template"]["spec"]["containers"][0], "name": "app", "image": image}
    return deployment(
        selector=body["spec"]["selector"],
        template={**body["spec"]["template"], "spec": {"containers": [container]}},
        **spec,
    )


def test_what_is_not_there_is_created(world):
    """The first apply creates, and its manager owns what it says, not what was filled in."""
    json = world.apply(DEPLOYMENTS, web(replicas=2))
    assert world.code == 201
    fields = owned(json, "a")
    assert {".spec.replicas", ".spec.selector", '.spec.template.spec.containers[name="app"].image'} <= fields
    assert ".spec.revisionHistoryLimit" not in fields
    assert not {field for field in fields if field.startswith((".metadata.name", ".kind", ".apiVersion"))}
    [entry] = json["metadata"]["managedFields"]
    assert (entry["operation"], entry["apiVersion"], entry["fieldsType"]) == ("Apply", "apps/v1", "FieldsV1")
    assert entry["time"] == format_rfc3339(START)


def test_the_time_of_an_update_is_that_of_the_last_field_taken(world):
    """A later write that changes nothing moves no version, and one that only removes moves no time."""
    body = config_map({"k": "v", "x": "y"}, labels={"l": "1"})
    created = world.send("create", CONFIG_MAPS, "", body, field_manager="a")
    world.clock.time = after(START, seconds(60))
    assert world.send("replace", CONFIG_MAPS, "c", body, field_manager="a") == created
    patched = world.send("patch", CONFIG_MAPS, "c", {"data": {"x": None}}, field_manager="a")
    assert _times(patched) == [format_rfc3339(START)]
    assert owned(patched, "a", "Update") == owned(created, "a", "Update") - {".data.x"}
    taken = world.send("patch", CONFIG_MAPS, "c", {"data": {"x": "z"}}, field_manager="a")
    assert _times(taken) == [format_rfc3339(world.clock.time)]


def _times(json):
    return [entry["time"] for entry in json["metadata"]["managedFields"]]


def test_the_same_again_writes_nothing(world):
    """Applying a configuration twice leaves the object at its version, times and all."""
    first = world.apply(DEPLOYMENTS, web(replicas=2))
    world.clock.time = after(START, seconds(60))
    assert world.apply(DEPLOYMENTS, web(replicas=2)) == first
    assert world.code == 200


def test_what_is_no_longer_applied_goes(world):
    """A field that only this manager owned is removed when its configuration drops it."""
    world.apply(CONFIG_MAPS, config_map({"x": "1", "y": "2"}, labels={"l": "1"}))
    world.apply(CONFIG_MAPS, config_map({"y": "2"}), "b")
    json = world.apply(CONFIG_MAPS, config_map({}))
    assert json["data"] == {"y": "2"}
    assert "labels" not in json["metadata"]


def test_an_item_that_is_no_longer_applied_goes(world):
    """A container leaves with everything in it, defaults too; one that another manager shares in stays."""
    body = web(replicas=1)
    containers = body["spec"]["template"]["spec"]["containers"]
    side = {"name": "side", "image": "side:1", "ports": [{"containerPort": 80}]}
    containers.append(side)
    world.apply(DEPLOYMENTS, body)
    shared = deployment(template={"spec": {"containers": [{"name": "side", "workingDir": "/x"}]}})
    world.apply(DEPLOYMENTS, shared, "b")
    body["spec"]["template"]["spec"]["containers"] = containers[:1]
    with pytest.raises(Invalid, match=r"containers\[1\]\.image"):
        world.apply(DEPLOYMENTS, body)  # what is left of it has no image
    world.apply(DEPLOYMENTS, deployment(template={"spec": {"containers": []}}), "b")
    json = world.apply(DEPLOYMENTS, body)
    assert [container["name"] for container in json["spec"]["template"]["spec"]["containers"]] == ["app"]


def test_others_fields_conflict(world):
    """A change of a field that another manager owns is refused, with the field and its owner."""
    world.apply(DEPLOYMENTS, web(replicas=2), "first")
    with pytest.raises(Conflict) as error:
        world.apply(DEPLOYMENTS, deployment(replicas=3), "second")
    assert str(error.value) == 'Apply failed with 1 conflict: conflict with "first": .spec.replicas'
    cause = {
        "reason": "FieldManagerConflict",
        "message": 'conflict with "first"',
        "field": ".spec.replicas",
    }
    assert error.value.status()["details"] == {"causes": [cause]}
    assert error.value.status()["reason"] == "Conflict"


def test_several_conflicts_are_listed(world):
    """Conflicts are reported by manager, each with its fields; one that updated with its version."""
    world.send("create", CONFIG_MAPS, body=config_map({"x": "1", "y": "1"}), field_manager="made")
    world.send("patch", CONFIG_MAPS, "c", {"data": {"z": "1"}}, field_manager="patched")
    with pytest.raises(Conflict) as error:
        world.apply(CONFIG_MAPS, config_map({"x": "2", "y": "2", "z": "2"}))
    assert str(error.value) == (
        'Apply failed with 3 conflicts: conflicts with "made" using v1:\n- .data.x\n- .data.y\n'
        'conflicts with "patched" using v1:\n- .data.z'
    )


def test_force_takes_ownership(world):
    """A forced apply sets the value and takes the field; the other manager still owns the rest."""
    world.apply(CONFIG_MAPS, config_map({"x": "1", "y": "1"}), "first")
    json = world.apply(CONFIG_MAPS, config_map({"x": "2"}), "second", force=True)
    assert json["data"] == {"x": "2", "y": "1"}
    assert owned(json, "first") == {".data.y"}
    assert owned(json, "second") == {".data.x"}


def test_equal_values_are_shared(world):
    """Managers that apply the same value own it together, and it stays until both release it."""
    world.apply(CONFIG_MAPS, config_map({"x": "1"}), "first")
    json = world.apply(CONFIG_MAPS, config_map({"x": "1"}), "second")
    assert owned(json, "first") == owned(json, "second") == {".data.x"}
    assert world.apply(CONFIG_MAPS, config_map({}), "first")["data"] == {"x": "1"}
    assert "data" not in world.apply(CONFIG_MAPS, config_map({}), "second")


def test_an_update_takes_what_it_changes(world):
    """An ordinary write owns what it changes, whoever owned it, and never conflicts."""
    world.apply(DEPLOYMENTS, web(replicas=2))
    json = world.send("patch", DEPLOYMENTS, "web", {"spec": {"replicas": 5}}, "scale", field_manager="scaler")
    json = world.send("get", DEPLOYMENTS, "web")
    assert ".spec.replicas" not in owned(json, "a")
    assert owned(json, "scaler", "Update", "scale") == {".spec.replicas"}
    with pytest.raises(Conflict, match='conflict with "scaler" with subresource "scale" using apps/v1'):
        world.apply(DEPLOYMENTS, web(replicas=2))
    # Who no longer says how many leaves that to the other.
    assert world.apply(DEPLOYMENTS, web())["spec"]["replicas"] == 5


def test_what_was_there_before_belongs_to_nobody_known(world):
    """On the first apply to an untracked object all its fields are those of before-first-apply."""
    world.send("create", CONFIG_MAPS, body=config_map({"x": "1"}))
    assert "managedFields" not in world.send("get", CONFIG_MAPS, "c")["metadata"]
    with pytest.raises(Conflict, match='conflict with "before-first-apply" using v1'):
        world.apply(CONFIG_MAPS, config_map({"x": "2"}))
    json = world.apply(CONFIG_MAPS, config_map({"x": "2", "y": "1"}), force=True)
    assert owned(json, "a") == {".data.x", ".data.y"}


def test_untracked_writers_of_tracked_objects_are_unknown(world):
    """Once fields are tracked, a write without a manager's name is the manager unknown's."""
    world.apply(CONFIG_MAPS, config_map({"x": "1"}))
    json = world.send("patch", CONFIG_MAPS, "c", {"data": {"x": "2"}})
    assert owned(json, "unknown", "Update") == {".data.x"}
    assert owned(json, "a") == set()


def test_status_is_managed_apart(world):
    """An apply to the status owns fields of the status only, one to the object none of them."""
    pod = builders.pod("p")
    world.apply(PODS, {**pod, "status": {"phase": "Failed"}})
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    json = world.apply(
        PODS, {"metadata": {"name": "p", "labels": {"x": "y"}}, "status": status}, "k", subresource="status"
    )
    assert json["status"] == {"phase": "Pending", "qosClass": "Burstable", **status}
    assert owned(json, "k", subresource="status") == {
        '.status.conditions[type="Ready"]',
        '.status.conditions[type="Ready"].status',
        '.status.conditions[type="Ready"].type',
    }
    assert not {field for field in owned(json, "a") if field.startswith(".status")}


def test_the_scale_can_be_applied(world):
    """An apply to the scale owns the replicas under that subresource."""
    world.apply(DEPLOYMENTS, web())
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "web"},
        "spec": {"replicas": 4},
    }
    answer = world.apply(DEPLOYMENTS, scale, "s", subresource="scale")
    assert (answer["kind"], answer["spec"]) == ("Scale", {"replicas": 4})
    assert owned(world.send("get", DEPLOYMENTS, "web"), "s", subresource="scale") == {".spec.replicas"}


def test_a_dry_run_answers_and_writes_nothing(world):
    """A dry run answers with the result, and stores nothing."""
    assert world.apply(CONFIG_MAPS, config_map({"x": "1"}), dry_run=True)["data"] == {"x": "1"}
    assert world.rest.handle(Request("list", CONFIG_MAPS, "default")).listing == []


def test_managers_can_be_forgotten(world):
    """A write whose managedFields is one empty entry clears them."""
    world.apply(CONFIG_MAPS, config_map({"x": "1"}))
    json = world.send("patch", CONFIG_MAPS, "c", {"metadata": {"managedFields": [{}]}})
    assert "managedFields" not in json["metadata"]


@pytest.mark.parametrize(
    ("body", "options", "error", "message"),
    [
        ({}, {"manager": ""}, Invalid, "fieldManager: Required value: is required for apply patch"),
        (
            {"metadata": {"name": "c", "managedFields": []}},
            {},
            BadRequest,
            "metadata.managedFields must be nil",
        ),
        ({"kind": "Secret"}, {}, BadRequest, "invalid object type: /v1, Kind=Secret"),
        ({"kind": ""}, {}, BadRequest, "invalid object type: /v1, Kind=$"),
        ({"metadata": {"name": "c", "uid": "no"}}, {}, Conflict, "uid mismatch"),
    ],
)
def test_what_cannot_be_applied(world, body, options, error, message):
    """Configurations without a manager, with managed fields, or of another object are refused."""
    with pytest.raises(error, match=message):
        world.apply(CONFIG_MAPS, {**config_map({}), **body}, **options)


def test_an_apply_at_an_old_version_conflicts(world):
    """A resourceVersion in the configuration is a precondition."""
    world.apply(CONFIG_MAPS, config_map({}))
    with pytest.raises(Conflict, match="please apply your changes to the latest version"):
        world.apply(CONFIG_MAPS, config_map({}, resourceVersion="1"))


data = st.dictionaries(st.sampled_from("pqrs"), st.sampled_from("12"), max_size=4)
steps = st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), data), min_size=1, max_size=8)


@given(steps)
@settings(max_examples=60, deadline=None)
def test_forced_applies_leave_exactly_the_applied_fields(steps):
    """After any forced applies the object holds exactly what each manager applied last, owned by those managers."""
    world = World()
    wishes = {}
    for manager, wish in steps:
        json = world.apply(CONFIG_MAPS, config_map(wish), manager, force=True)
        for other in wishes.values():
            for key, value in wish.items():
                if other.get(key, value) != value:
                    del other[key]
        wishes[manager] = dict(wish)
    expected = {key: value for wish in wishes.values() for key, value in wish.items()}
    assert (json.get("data") or {}) == expected
    for manager, wish in wishes.items():
        fields = {field for field in owned(json, manager) if field != ".data"}
        assert fields == {f".data.{key}" for key in wish}


names = st.lists(st.sampled_from("abc"), unique=True, max_size=3)


@given(names, st.lists(st.sampled_from([80, 81]), unique=True))
@settings(max_examples=50)
def test_fields_are_written_and_read_again(containers, ports):
    """FieldsV1 reads as the set it was written from."""
    items = [
        {"name": name, "image": "x", "ports": [{"containerPort": port} for port in ports]}
        for name in containers
    ]
    pod = {"metadata": {"labels": {"x.y/z": "1"}, "finalizers": ["f/a"]}, "spec": {"containers": items}}
    paths = frozenset(values_in(pod, shape_of(PODS)))
    assert from_fields_v1(to_fields_v1(paths)) == paths
