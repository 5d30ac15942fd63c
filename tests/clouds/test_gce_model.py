"""Requests to Compute Engine, and the test server's answers, held against the API's own description."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.clouds.vendors import Gce
from tests.clouds.vendors.gce import url
from tests.clouds.vendors.vendor import first_of

from kubetide.units.time import minutes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def api():
    """The discovery document that Google's client library ships."""
    library = pytest.importorskip("googleapiclient", reason="the library serves as an oracle only")
    documents = Path(library.__path__[0]) / "discovery_cache" / "documents"
    return json.loads((documents / "compute.v1.json").read_text(encoding="utf-8"))


def methods(resources):
    for resource in resources.values():
        yield from resource.get("methods", {}).values()
        yield from methods(resource.get("resources", {}))


def method_of(api, asked):
    path = asked.path.removeprefix("/compute/v1/")
    for method in methods(api["resources"]):
        pattern = re.sub(r"\{\w+\}", "[^/]+", method["path"])
        if method["httpMethod"] == asked.method and re.fullmatch(pattern, path):
            return method
    raise AssertionError(f"the API has no {asked.method} {path}")


def check(api, schema, value, where):
    """Each key of the value is a property of the schema, all the way down."""
    if "$ref" in schema:
        schema = api["schemas"][schema["$ref"]]
    if isinstance(value, list):
        for one in value:
            check(api, schema["items"], one, where)
    elif isinstance(value, dict):
        for key, one in value.items():
            assert key in schema["properties"], f"{where}: there is no {key}"
            check(api, schema["properties"][key], one, f"{where}.{key}")


def spied(gce):
    """Return a list of what the server is asked and answers from now on."""
    seen, answer = [], gce._answer

    def spy(asked, parts):
        found = answer(asked, parts)
        seen.append((asked, found))
        return found

    gce._answer = spy
    return seen


def check_all(api, seen):
    """Check all that was asked and answered; return the ids of the methods."""
    for asked, found in seen:
        method = method_of(api, asked)
        assert set(asked.query) <= set(method.get("parameters", {})), method["id"]
        if asked.body is not None:
            check(api, method["request"], asked.body, method["id"])
        if found.status == 200:
            check(api, method["response"], found.body, method["id"])
    return {method_of(api, asked)["id"] for asked, _ in seen}


def test_creation_and_deletion_fit_the_api(api):
    """The bodies that create a group are parts of the API's objects, all the way down."""

    async def story(here):
        seen, cloud = spied(here.fake), here.connect()
        made = await cloud.create_group(await first_of(cloud))
        await cloud.delete_group(made.id)
        assert {
            "compute.instanceTemplates.insert",
            "compute.instanceTemplates.delete",
            "compute.instanceGroupManagers.insert",
            "compute.instanceGroupManagers.delete",
            "compute.globalOperations.wait",
        } <= check_all(api, seen)

    Gce(page=500).with_pattern().play(story)


@pytest.mark.parametrize("bulk", [False, True])
def test_requests_and_answers_fit_the_api(api, bulk):
    """Paths, parameters, bodies and answers of a whole story are the API's."""

    async def story(here):
        seen, cloud = spied(here.fake), here.connect()
        await cloud.refresh()
        await cloud.increase_size(url("web"), 3)
        await cloud.decrease_target_size(url("web"), 1)
        await here.clock.sleep(minutes(2))
        (group,) = await cloud.refresh()
        await cloud.delete_nodes(url("web"), [group.instances[0].provider_id])
        assert {
            "compute.instanceGroupManagers.createInstances",
            "compute.instanceGroupManagers.deleteInstances",
            "compute.instanceGroupManagers.resize",
            "compute.zoneOperations.wait",
        } <= check_all(api, seen)

    Gce(bulk=bulk, discovery=("mig:namePrefix=w,max=4",)).with_groups().play(story)
