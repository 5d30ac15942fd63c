"""Whatever is sent, the answer is an object or a refusal, never a crash, and what is stored can be read."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy

from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.store import Options, Request, Rest, Store
from kubetide.objects.kinds import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HPAS,
    LEASES,
    NAMESPACES,
    NODES,
    PDBS,
    PODS,
    PRIORITY_CLASSES,
    STORED_KINDS,
)
from kubetide.ports.errors import ApiError, Forbidden, NotFound
from kubetide.testing import builders
from kubetide.units.time import parse_rfc3339

BODIES = [
    (PODS, builders.pod("a", labels={"app": "x"}, extra={"metadata": {"finalizers": ["test/a"]}})),
    (NODES, builders.node("a", extra={"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})),
    (DEPLOYMENTS, builders.deployment("a", replicas=2)),
    (HPAS, builders.hpa("a", "web")),
    (PDBS, builders.pdb("a", {"app": "x"}, min_available=1)),
    (CONFIG_MAPS, builders.config_map("a", data={"k": "v"})),
    (LEASES, builders.lease("a", holder="h")),
    (NAMESPACES, builders.namespace("a")),
    (PRIORITY_CLASSES, builders.priority_class("a", 5)),
]

junk = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.sampled_from(["", "1", "-1", "100m", "x" * 300, "2026-03-02T08:00:00Z"]),
    st.lists(st.none() | st.integers() | st.text(max_size=3), max_size=2),
    st.dictionaries(st.text(max_size=3), st.none() | st.integers() | st.text(max_size=3), max_size=2),
    st.sampled_from([{}, [], [{}], [[]], {"a": {"b": []}}, [None]]),
)


class Clock:
    def now(self):
        return parse_rfc3339("2026-03-02T08:00:00Z")


def paths(value, path=()):
    """Every path of a JSON value that can be spoilt."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


def spoil(body, path, value):
    """Replace the value at the path, and add a meaningless member beside it."""
    body = deepcopy(body)
    at = body
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return body


@st.composite
def spoilt(draw):
    kind, body = draw(st.sampled_from(BODIES))
    full = {**body, "status": body.get("status", {"conditions": [], "phase": "x"})}
    full["metadata"] = {
        **body["metadata"],
        "labels": body["metadata"].get("labels", {"l": "1"}),
        "annotations": {"a": "b"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}],
        "resourceVersion": "",
        "uid": "",
        "namespace": body["metadata"].get("namespace", ""),
        "generateName": "",
        "finalizers": [],
    }
    path = draw(st.sampled_from(sorted(paths(full), key=repr)))
    return (
        kind,
        body,
        spoil(full, path, draw(junk)),
        draw(st.sampled_from(["create", "replace", "merge", "status", "json"])),
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(spoilt(), min_size=1, max_size=8))
def test_no_body_crashes_the_server(attempts):
    """A spoilt body is taken or refused; lists, deletes and the typed reads of what was taken work."""
    rest = Rest(Store(), Clock(), seed=1)
    for kind, body, bad, how in attempts:
        space = "default" if kind.namespaced else ""
        for request in (
            Request("create", kind, space, body=body),
            Request("create", kind, space, body=bad),
            Request("replace", kind, space, "a", body=bad),
            Request("patch", kind, space, "a", "status" if how == "status" else "", body=bad),
            Request(
                "patch",
                kind,
                space,
                "a",
                options=Options(patch_type="json"),
                body=[{"op": "add", "path": f"/{key}", "value": value} for key, value in bad.items()],
            ),
            Request("create", kind, space, "a", "eviction", body=bad),
            Request("create", kind, space, "a", "binding", body=bad),
            Request("replace", kind, space, "a", "scale", body=bad),
        ):
            with suppress(ApiError):
                rest.handle(request)
    for kind in STORED_KINDS:
        listing = rest.handle(Request("list", kind, options=Options(labels="!none"))).listing
        for revision in listing:
            revision.read_as(kind.model)
            with suppress(Forbidden, NotFound):  # namespaces that must stay; what went with an owner
                rest.handle(Request("delete", kind, revision.key[0], revision.key[1]))
