"""Kinds that are defined at run time."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import EmbeddedCluster, Options, Request, Rest, Store
from kubetide.embedded.apiserver.store.custom_kinds.schema import defaulted, faults_in, pruned
from kubetide.objects.definition import CustomResourceDefinition
from kubetide.objects.kinds import CUSTOM_RESOURCE_DEFINITIONS as CRDS
from kubetide.objects.kinds import Kind
from kubetide.ports.errors import (
    Conflict,
    InternalError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    UnsupportedMediaType,
)
from kubetide.runtime.timing.clock import run_virtual
from kubetide.units.time import parse_rfc3339

START = parse_rfc3339("2026-03-02T08:00:00Z")
ROLLOUTS = Kind("example.com", "v1", "Rollout", "rollouts", dict)
ROLLOUTS_V2 = Kind("example.com", "v2", "Rollout", "rollouts", dict)

SPEC = {
    "type": "object",
    "required": ["image"],
    "properties": {
        "image": {"type": "string", "minLength": 1, "pattern": "^[a-z:0-9]+$"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 50, "default": 1},
        "mode": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
        "port": {"x-kubernetes-int-or-string": True},
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "steps": {
            "type": "array",
            "maxItems": 3,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {
                "type": "object",
                "required": ["name"],
                "properties": {"name": {"type": "string"}, "weight": {"type": "integer", "default": 10}},
            },
        },
    },
}
STATUS = {"type": "object", "properties": {"replicas": {"type": "integer"}, "selector": {"type": "string"}}}
SCHEMA = {"type": "object", "properties": {"spec": SPEC, "status": STATUS}}
SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}


def version(name="v1", *, storage=True, served=True, schema=SCHEMA, **more):
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": SCALE},
        "additionalPrinterColumns": [{"name": "Mode", "type": "string", "jsonPath": ".spec.mode"}],
        **more,
    }


def definition(*versions, **spec):
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rollouts.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "rollouts", "kind": "Rollout", "shortNames": ["ro"]},
            "versions": list(versions or (version(),)),
            **spec,
        },
    }


def rollout(name="a", **spec):
    return {"metadata": {"name": name}, "spec": {"image": "app:1", **spec}}


class Clock:
    def now(self):
        return START


class World:
    def __init__(self, body=None):
        self.rest = Rest(Store(), Clock(), seed=1)
        self.send("create", CRDS, body=body or definition())

    def send(self, verb, kind, name="", body=None, subresource="", **options):
        namespace = "" if kind is CRDS else "default"
        request = Request(verb, kind, namespace, name, subresource, Options(**options), body)
        return self.rest.handle(request).object.json


@pytest.fixture
def world():
    return World()


def test_a_definition_is_established(world):
    """A new definition has its names accepted, is established, and its kind is served with all it says."""
    read = world.send("get", CRDS, "rollouts.example.com")
    assert {one["type"]: one["status"] for one in read["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert read["status"]["storedVersions"] == ["v1"]
    assert read["status"]["acceptedNames"]["listKind"] == "RolloutList"
    assert read["spec"]["names"]["singular"] == "rollout"
    [kind] = [one for one in world.rest.kinds if one.group == "example.com"]
    assert (kind.kind, kind.short_names, kind.subresources) == ("Rollout", ("ro",), ("status", "scale"))
    assert [column.name for column in kind.columns] == ["Mode"]


def test_the_definition_reads_as_its_type():
    """Every part of a definition has its place in the struct."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        made = await cluster.create(CRDS, definition())
        assert isinstance(made, CustomResourceDefinition)
        assert made.spec.versions[0].schema.schema == SCHEMA
        assert made.spec.versions[0].subresources.scale.spec_replicas_path == ".spec.replicas"

    run_virtual(main, start=START)


def test_objects_are_filled_in_and_cut(world):
    """Defaults are filled in at every depth and unknown fields dropped, except where they are preserved."""
    made = world.send(
        "create",
        ROLLOUTS,
        body={
            **rollout(steps=[{"name": "x", "junk": 1}], junk=1, extra={"any": {"thing": 1}}, mode=None),
            "junk": 1,
        },
    )
    assert made["apiVersion"] == "example.com/v1"
    assert made["spec"] == {
        "image": "app:1",
        "replicas": 1,
        "mode": "slow",
        "steps": [{"name": "x", "weight": 10}],
        "extra": {"any": {"thing": 1}},
    }
    assert "junk" not in made
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"replicas": "x"},
            'spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"',
        ),
        (
            {"replicas": 51},
            "spec.replicas: Invalid value: 51: spec.replicas in body should be less than or equal to 50",
        ),
        (
            {"replicas": -1},
            "spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0",
        ),
        ({"mode": "x"}, 'spec.mode: Unsupported value: "x": supported values: "fast", "slow"'),
        ({"image": None}, "spec.image: Required value"),
        ({"image": ""}, 'spec.image: Invalid value: "": spec.image in body should be at least 1 chars long'),
        ({"image": "A"}, "spec.image: Invalid value: \"A\": spec.image in body should match '^[a-z:0-9]+$'"),
        (
            {"port": []},
            'spec.port: Invalid value: "array": spec.port in body must be of type integer,string: "array"',
        ),
        (
            {"labels": {"a": 1}},
            'spec.labels.a: Invalid value: "integer": spec.labels.a in body must be of type string: "integer"',
        ),
        ({"steps": [{"weight": 1}]}, "spec.steps[0].name: Required value"),
        ({"steps": [{"name": "x"}, {"name": "x"}]}, 'spec.steps[1]: Duplicate value: {"name":"x"}'),
        ({"steps": [{"name": c} for c in "abcd"]}, "spec.steps: Too many: 4: must have at most 3 items"),
    ],
)
def test_broken_rules_are_named(world, spec, message):
    """An object that breaks its schema is Invalid, in upstream's words."""
    with pytest.raises(Invalid) as error:
        world.send("create", ROLLOUTS, body=rollout(**spec))
    assert message in str(error.value)
    assert str(error.value).startswith('Rollout.example.com "a" is invalid: ')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scope": "Galaxy"}, 'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'),
        ({"group": "other.io"}, 'metadata.name: Invalid value: "rollouts.example.com": must be spec.names.plural+"."+spec.group'),
        ({"versions": [version(storage=False)]}, "must have exactly one version marked as storage version"),
        ({"versions": [version(), version(storage=False)]}, "must contain unique version names"),
        ({"versions": [version(schema={"type": "object", "properties": {"x": {}}})]}, "properties[x].type: Required value: must not be empty"),
        ({"versions": [version(schema={"type": "array"})]}, 'openAPIV3Schema.type: Invalid value: "array": must be object at the root'),
        ({"versions": [version(schema={"type": "object", "properties": {"x": {"type": "integer", "default": "y"}}})]}, "properties[x].default: Invalid value"),
        ({"versions": [{"name": "v1", "served": True, "storage": True}]}, "schema.openAPIV3Schema: Required value"),
        ({"versions": [version(schema={"type": "object", "properties": {"x": {"type": "string", "pattern": "("}}})]}, "must be a valid regular expression"),
        ({"versions": [version(schema={"type": "object", "anyOf": [{"type": "object", "default": {}}]})]}, "anyOf[0].default: Forbidden: must be empty to be structural"),
        ({"versions": [version(subresources={"scale": {"specReplicasPath": ".replicas"}})]}, "should be a json path under .spec."),
        ({"conversion": {"strategy": "Webhook"}}, 'spec.conversion.strategy: Unsupported value: "Webhook"'),
    ],
)  # fmt: skip
def test_definitions_that_cannot_be_served(change, message):
    """A definition that breaks a rule is Invalid and defines nothing."""
    rest = Rest(Store(), Clock(), seed=1)
    with pytest.raises(Invalid) as error:
        rest.handle(Request("create", CRDS, body=definition(**change)))
    assert message in str(error.value)
    assert not [kind for kind in rest.kinds if kind.group == "example.com"]


def test_what_must_stay_stays(world):
    """The scope and the kind of a definition cannot be changed."""
    with pytest.raises(Invalid, match=r"spec.scope: Invalid value"):
        world.send("patch", CRDS, "rollouts.example.com", {"spec": {"scope": "Cluster"}})


def test_status_and_generation(world):
    """The status is written apart and does not count; any other change counts."""
    world.send("create", ROLLOUTS, body={**rollout(), "status": {"replicas": 9}})
    after = world.send("patch", ROLLOUTS, "a", {"status": {"replicas": 2, "junk": 1}}, "status")
    assert (after["metadata"]["generation"], after["status"]) == (1, {"replicas": 2})
    assert world.send("patch", ROLLOUTS, "a", {"spec": {"replicas": 3}})["metadata"]["generation"] == 2
    with pytest.raises(Invalid, match=r"status.replicas in body must be of type integer"):
        world.send("patch", ROLLOUTS, "a", {"status": {"replicas": "x"}}, "status")


def test_scale_through_the_port():
    """get_scale and replace_scale read and write the paths that the definition names."""

    async def main(clock):
        cluster = EmbeddedCluster(Store(), clock)
        await cluster.create(CRDS, definition())
        await cluster.create(ROLLOUTS, rollout(replicas=2), namespace="default")
        status = {"status": {"replicas": 2, "selector": "app=a"}}
        await cluster.patch(ROLLOUTS, "a", status, namespace="default", subresource="status")
        scale = await cluster.get_scale(ROLLOUTS, "a", namespace="default")
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (2, 2, "app=a")
        await cluster.replace_scale(ROLLOUTS, "a", 7, namespace="default")
        read = await cluster.get(ROLLOUTS, "a", namespace="default")
        assert read["spec"]["replicas"] == 7
        with pytest.raises(Conflict):
            await cluster.replace_scale(
                ROLLOUTS, "a", 8, namespace="default", resource_version=scale.metadata.resource_version
            )

    run_virtual(main, start=START)


def test_a_scale_without_replicas_is_reported():
    """An object that says no replicas has no scale to show."""
    loose = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    world = World(definition(version(schema=loose)))
    world.send("create", ROLLOUTS, body=rollout())
    with pytest.raises(InternalError, match=r'the spec replicas field ".spec.replicas" does not exist'):
        world.send("get", ROLLOUTS, "a", subresource="scale")


def test_patches(world):
    """Merge patches and apply are taken, lists with keys are applied item by item; strategic ones are not."""
    world.send("create", ROLLOUTS, body=rollout(steps=[{"name": "x"}]))
    config = {"apiVersion": "example.com/v1", "kind": "Rollout", "metadata": {"name": "a"}}
    config["spec"] = {"steps": [{"name": "y", "weight": 5}]}
    after = world.send("patch", ROLLOUTS, "a", config, patch_type="apply", field_manager="m")
    assert {one["name"]: one["weight"] for one in after["spec"]["steps"]} == {"x": 10, "y": 5}
    with pytest.raises(UnsupportedMediaType, match="application/merge-patch"):
        world.send("patch", ROLLOUTS, "a", {}, patch_type="strategic")


def test_versions_differ_in_their_schemas():
    """Each version is read by its own schema; what is not served is not found."""
    wider = {
        "type": "object",
        "properties": {
            "spec": {**SPEC, "properties": {**SPEC["properties"], "new": {"type": "string", "default": "n"}}},
            "status": STATUS,
        },
    }
    world = World(
        definition(
            version("v1", storage=False),
            version("v2", schema=wider),
            version("v3", storage=False, served=False),
        )
    )
    made = world.send("create", ROLLOUTS, body=rollout())
    assert made["apiVersion"] == "example.com/v1"
    assert "new" not in made["spec"]
    read = world.send("get", ROLLOUTS_V2, "a")
    assert (read["apiVersion"], read["spec"]["new"]) == ("example.com/v2", "n")
    with pytest.raises(Invalid, match=r"spec.mode: Unsupported value"):
        world.send("patch", ROLLOUTS, "a", {"spec": {"mode": "x"}})
    with pytest.raises(NotFound):
        world.send("get", Kind("example.com", "v3", "Rollout", "rollouts", dict), "a")
    served = [(kind.version) for kind in world.rest.kinds if kind.group == "example.com"]
    assert sorted(served) == ["v1", "v2"]


def test_the_stored_version_can_change(world):
    """When another version is stored, what is there is read in it, and the old one is remembered."""
    world.send("create", ROLLOUTS, body=rollout())
    two = definition(version("v1", storage=False), version("v2"))
    after = world.send("replace", CRDS, "rollouts.example.com", two)
    after = world.send("get", CRDS, "rollouts.example.com")
    assert after["status"]["storedVersions"] == ["v1", "v2"]
    assert world.send("get", ROLLOUTS_V2, "a")["apiVersion"] == "example.com/v2"
    assert world.send("get", ROLLOUTS, "a")["apiVersion"] == "example.com/v1"
    with pytest.raises(Invalid, match="storedVersions"):
        world.send("patch", CRDS, "rollouts.example.com", {"spec": {"versions": [version("v2")]}})


def test_a_definition_takes_its_objects_with_it(world):
    """Deleting a definition deletes its objects, waits for their finalizers, and then serves the kind no longer."""
    world.send("create", ROLLOUTS, body=rollout("a"))
    held = rollout("b")
    held["metadata"]["finalizers"] = ["x/y"]
    world.send("create", ROLLOUTS, body=held)
    world.send("delete", CRDS, "rollouts.example.com")
    with pytest.raises(NotFound):
        world.send("get", ROLLOUTS, "a")
    assert world.send("get", ROLLOUTS, "b")["metadata"]["deletionTimestamp"]
    with pytest.raises(MethodNotAllowed, match="while custom resource definition is terminating"):
        world.send("create", ROLLOUTS, body=rollout("c"))
    world.send("patch", ROLLOUTS, "b", {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound, match="the server could not find the requested resource"):
        world.send("get", ROLLOUTS, "b")
    with pytest.raises(NotFound, match=r"rollouts.example.com"):
        world.send("get", CRDS, "rollouts.example.com")
    world.send("create", CRDS, body=definition())
    assert world.send("create", ROLLOUTS, body=rollout())["metadata"]["name"] == "a"


def test_a_store_that_was_brought_back_serves_them():
    """Definitions and their objects live on in a store that is filled from an earlier one."""
    world = World()
    world.send("create", ROLLOUTS, body=rollout(replicas=4))
    stored = [
        (kind.resource, revision.key, revision.json)
        for kind in world.rest.store.kinds
        for revision in world.rest.store._tables[kind.resource].objects.values()
    ]
    store = Store()
    store.restore(world.rest.store.version, sorted(stored, key=lambda one: one[0], reverse=True))
    again = Rest(store, Clock(), seed=1)
    read = again.handle(Request("get", ROLLOUTS, "default", "a", "scale")).object.json
    assert read["spec"]["replicas"] == 4


def test_combined_schemas():
    """allOf, anyOf, oneOf and not are checked, with upstream's sentences."""
    small, even = {"maximum": 5}, {"multipleOf": 2}
    schema = {
        "type": "integer",
        "anyOf": [small, even],
        "oneOf": [small, {"minimum": 5}],
        "not": {"enum": [7]},
    }
    assert not faults_in(4, schema, "x")
    texts = " ".join(map(str, faults_in(5, schema, "x") + faults_in(7, schema, "x")))
    assert '"x" must validate one and only one schema (oneOf). Found 2 valid alternatives' in texts
    assert '"x" must validate at least one schema (anyOf)' in texts
    assert '"x" must not validate the schema (not)' in texts


values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 60) | st.sampled_from(["", "fast", "app:1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*SPEC["properties"], "name", "weight", "junk"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values)
@settings(max_examples=100)
def test_any_object_is_cut_filled_and_checked(spec):
    """Cutting and filling in twice is doing it once, in the metadata too, and no JSON breaks the checks."""
    obj = {"apiVersion": "example.com/v1", "kind": "Rollout", "metadata": {"name": "a", "x": 1}, "spec": spec}
    once = defaulted(pruned(obj, SCHEMA, root=True), SCHEMA)
    assert defaulted(pruned(once, SCHEMA, root=True), SCHEMA) == once
    assert once["metadata"] == {"name": "a"}
    assert all(str(fault).startswith("spec") for fault in faults_in(once, SCHEMA, ""))
