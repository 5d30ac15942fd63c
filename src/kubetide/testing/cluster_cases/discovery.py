"""What is served, and how that changes while the cluster runs."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kubetide.objects.base import Json
from kubetide.objects.kinds import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    HPAS,
    HPAS_V1,
    NODES,
    PODS,
    Kind,
)
from kubetide.ports.clock import Clock
from kubetide.ports.cluster import Cluster
from kubetide.ports.errors import ApiError, NotFound
from kubetide.testing.cluster_cases.ground import Case, eventually, scratch


async def kinds_that_are_built_in(cluster: Cluster, _clock: Clock) -> None:
    """Kinds of the registry are served as they stand there, with their types."""
    served = await cluster.kinds()
    for kind in (PODS, NODES, DEPLOYMENTS, HPAS):
        assert served.count(kind) == 1, kind.resource


async def the_preferred_version_comes_first(cluster: Cluster, _clock: Clock) -> None:
    """Of a group with several versions the preferred one stands first."""
    served = list(await cluster.kinds())
    assert served.index(HPAS) < served.index(HPAS_V1)


async def kinds_come_and_go_with_their_definition(cluster: Cluster, clock: Clock) -> None:
    """Return what a definition brings is served, untyped, with scope and subresources, until it is deleted."""
    async with scratch(cluster) as unique:
        group = f"{unique}.example.com"
        name = f"gadgets.{group}"
        await cluster.create(CUSTOM_RESOURCE_DEFINITIONS, _definition(name, group))
        try:
            await eventually(clock, f"{name} is served", lambda: _serves(cluster, group, ["v1", "v1beta1"]))
            served = [kind for kind in await cluster.kinds() if kind.group == group]
            assert served[0] == Kind(
                group,
                "v1",
                "Gadget",
                "gadgets",
                dict,
                namespaced=False,
                subresources=("status", "scale"),
                short_names=("gt",),
            )
            await _can_be_scaled(cluster, clock, served[0])
        finally:
            with suppress(NotFound):
                await cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, name)
        await eventually(clock, f"{name} is not served", lambda: _serves(cluster, group, []))


async def _serves(cluster: Cluster, group: str, versions: list[str]) -> bool:
    return [kind.version for kind in await cluster.kinds() if kind.group == group] == versions


async def _can_be_scaled(cluster: Cluster, clock: Clock, kind: Kind[Any]) -> None:
    async def created() -> bool:
        # Discovery may be ahead of what serves the kind.
        try:
            await cluster.create(kind, {"metadata": {"name": "one"}, "spec": {"size": 2}})
        except ApiError:
            return False
        return True

    await eventually(clock, f"a {kind.kind} is made", created)
    assert (await cluster.replace_scale(kind, "one", 3, namespace="")).spec.replicas == 3
    assert (await cluster.get(kind, "one"))["spec"] == {"size": 3}


def _definition(name: str, group: str) -> Json:
    schema = {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "status": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
    version = {"served": True, "schema": {"openAPIV3Schema": schema}}
    scale = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
    return {
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": {
                "plural": "gadgets",
                "singular": "gadget",
                "kind": "Gadget",
                "listKind": "GadgetList",
                "shortNames": ["gt"],
            },
            "versions": [
                {**version, "name": "v1beta1", "storage": False},
                {**version, "name": "v1", "storage": True, "subresources": {"status": {}, "scale": scale}},
            ],
        },
    }


CASES: list[Case] = [
    kinds_that_are_built_in,
    the_preferred_version_comes_first,
    kinds_come_and_go_with_their_definition,
]
