"""Owners that make no sense: circles, owners that are not there, owners in another namespace."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import Options, Request, Rest, Store
from kubetide.objects.kinds import CONFIG_MAPS, NAMESPACES
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339


class Clock:
    def now(self):
        return parse_rfc3339("2026-03-02T08:00:00Z")


def reference(name, uid, *, blocks=True):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": blocks}


def create(rest, name, namespace="default"):
    body = builders.config_map(name)
    return rest.handle(Request("create", CONFIG_MAPS, namespace, body=body)).object.uid


def own(rest, name, owners, namespace="default"):
    patch = {"metadata": {"ownerReferences": owners}}
    rest.handle(Request("patch", CONFIG_MAPS, namespace, name, body=patch))


def names(rest, namespace=""):
    return [revision.key[1] for revision in rest.handle(Request("list", CONFIG_MAPS, namespace)).listing]


def delete(rest, name, propagation):
    rest.handle(Request("delete", CONFIG_MAPS, "default", name, options=Options(propagation=propagation)))


@pytest.mark.parametrize(
    ("propagation", "left"), [("Foreground", []), ("Background", []), ("Orphan", ["b", "c"])]
)
def test_a_circle_of_owners(propagation, left):
    """Deleting one of three that own one another in a circle deletes all, or none where it orphans."""
    rest = Rest(Store(), Clock(), 1)
    uids = {name: create(rest, name) for name in "abc"}
    for name, owner in (("a", "c"), ("b", "a"), ("c", "b")):
        own(rest, name, [reference(owner, uids[owner])])
    delete(rest, "a", propagation)
    assert names(rest) == left


def test_an_object_that_owns_itself():
    """It can be deleted, waiting for its dependents or not."""
    for propagation in ("Foreground", "Background"):
        rest = Rest(Store(), Clock(), 1)
        own(rest, "a", [reference("a", create(rest, "a"))])
        delete(rest, "a", propagation)
        assert names(rest) == []


def test_an_owner_in_another_namespace_is_none():
    """As the garbage collector sees it, there is no such owner, so the dependent goes."""
    rest = Rest(Store(), Clock(), 1)
    rest.handle(Request("create", NAMESPACES, body=builders.namespace("far")))
    uid = create(rest, "owner", "far")
    create(rest, "dependent")
    own(rest, "dependent", [reference("owner", uid)])
    assert names(rest, "default") == []
    assert names(rest, "far") == ["owner"]


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=14),
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from(["Foreground", "Background", "Orphan"])), max_size=6
    ),
)
def test_any_owners_come_to_an_end(edges, deletions):
    """Whatever the owners are, deletions end, and no object remains that waits for a deleted one."""
    rest = Rest(Store(), Clock(), 1)
    uids = {str(number): create(rest, str(number)) for number in range(6)}
    for number in range(6):
        owners = [
            reference(str(owner), uids[str(owner)], blocks=blocks)
            for one, owner, blocks in edges
            if one == number
        ]
        if owners:
            own(rest, str(number), owners)
    for number, propagation in deletions:
        if str(number) in names(rest):
            delete(rest, str(number), propagation)
    for revision in rest.handle(Request("list", CONFIG_MAPS)).listing:
        assert not revision.metadata.get("deletionTimestamp"), "waits for ever"
