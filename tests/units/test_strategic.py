from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.embedded.apiserver.patches.merging import SET, Shape, keyed, struct
from kubetide.embedded.apiserver.patches.strategic import StrategicPatchError, strategic_merge
from kubetide.units.patch import merge_patch, same_json

SHAPE = struct(
    containers=keyed("name", struct(ports=keyed("port"))),
    finalizers=SET,
    selector=Shape(replace=True),
)
A, B, C = {"name": "a", "v": 1}, {"name": "b", "v": 2}, {"name": "c", "v": 3}

TABLE = {
    "items are merged by key": (
        {"containers": [A, B]},
        {"containers": [{"name": "b", "w": 9}]},
        {"containers": [A, {**B, "w": 9}]},
    ),
    "a new item comes first": ({"containers": [A]}, {"containers": [B]}, {"containers": [B, A]}),
    "items before a shared one stay before it": (
        {"containers": [A, B]},
        {"containers": [B, C]},
        {"containers": [A, B, C]},
    ),
    "lists within items are merged": (
        {"containers": [{"name": "a", "ports": [{"port": 1}]}]},
        {"containers": [{"name": "a", "ports": [{"port": 1, "x": 1}]}]},
        {"containers": [{"name": "a", "ports": [{"port": 1, "x": 1}]}]},
    ),
    "an item is deleted": (
        {"containers": [A, B]},
        {"containers": [{"name": "a", "$patch": "delete"}]},
        {"containers": [B]},
    ),
    "a list is replaced": (
        {"containers": [A, B]},
        {"containers": [{"$patch": "replace"}, C]},
        {"containers": [C]},
    ),
    "a map is replaced": ({"m": {"x": 1}}, {"m": {"y": 2, "$patch": "replace"}}, {"m": {"y": 2}}),
    "a map is emptied": ({"m": {"x": 1}}, {"m": {"$patch": "delete"}}, {"m": {}}),
    "a map that is replaced by its type": (
        {"selector": {"x": 1}},
        {"selector": {"y": 2}},
        {"selector": {"y": 2}},
    ),
    "a list without a key is replaced": ({"args": [1, 2]}, {"args": [3]}, {"args": [3]}),
    "null removes": ({"a": 1, "b": {"c": 1}}, {"a": None, "b": {"c": None}}, {"b": {}}),
    "sets are united": (
        {"finalizers": ["x", "y"]},
        {"finalizers": ["y", "z"]},
        {"finalizers": ["x", "y", "z"]},
    ),
    "scalars leave a set": (
        {"finalizers": ["x", "y"]},
        {"$deleteFromPrimitiveList/finalizers": ["x"]},
        {"finalizers": ["y"]},
    ),
    "the order of items is set": (
        {"containers": [A, B]},
        {"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}]},
        {"containers": [B, A]},
    ),
    "what the order does not name stays in its place": (
        {"containers": [A, B]},
        {"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "containers": [C]},
        {"containers": [C, A, B]},
    ),
    "members that are not retained go": (
        {"s": {"type": "RollingUpdate", "rollingUpdate": {"x": 1}}},
        {"s": {"$retainKeys": ["type"], "type": "Recreate"}},
        {"s": {"type": "Recreate"}},
    ),
    "directives do not reach a new member": (
        {},
        {
            "m": {"$retainKeys": ["x"], "x": 1, "n": None},
            "containers": [A, {"name": "b", "$patch": "delete"}],
        },
        {"m": {"x": 1}, "containers": [A]},
    ),
}


@pytest.mark.parametrize("case", TABLE.values(), ids=list(TABLE))
def test_patches_come_out_as_upstreams(case):
    """Each documented behaviour of a strategic merge patch holds."""
    target, patch, expected = case
    before = copy.deepcopy((target, patch))
    assert strategic_merge(target, patch, SHAPE) == expected
    assert (target, patch) == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        ({"containers": [{"v": 1}]}, "does not contain declared merge key: name"),
        ({"m": {"$patch": "frobnicate"}}, "unknown patch type: frobnicate"),
        ({"containers": [{"$patch": "delete"}]}, "delete patch type with no merge key defined"),
        ({"$retainKeys": ["x"], "y": 1}, "invalid patch format of retainKeys"),
        ({"$retainKeys": "x"}, "invalid patch format of retainKeys"),
        ({"$deleteFromPrimitiveList/finalizers": "x"}, "invalid patch format of primitive list"),
        ({"$setElementOrder/containers": "x"}, "invalid patch format of setElementOrder list"),
        (
            {"$setElementOrder/containers": [A], "containers": [B]},
            "doesn't match $setElementOrder/containers list",
        ),
        ({"containers": [1]}, "list element types are not identical"),
        ({"containers": [[]]}, "lists of lists are not supported"),
        ([], "invalid JSON document"),
    ],
)
def test_bad_patches_say_why(patch, message):
    """A patch that cannot be applied is refused in upstream's words."""
    with pytest.raises(StrategicPatchError) as error:
        strategic_merge({"containers": [A], "m": {"x": 1}}, patch, SHAPE)
    assert message in str(error.value)


items = st.lists(
    st.builds(lambda name, v: {"name": name, "v": v}, st.sampled_from("abcde"), st.integers(0, 3)),
    unique_by=lambda item: item["name"],
    max_size=5,
)
plain = st.dictionaries(
    st.sampled_from("xyz"),
    st.recursive(
        st.integers(0, 3) | st.none(), lambda inner: st.dictionaries(st.sampled_from("pq"), inner, max_size=2)
    ),
    max_size=3,
)


@given(items, items)
@settings(max_examples=100)
def test_merging_keyed_lists(old, new):
    """Every item of either list is there once, the patch's values win, and a second time changes nothing."""
    merged = strategic_merge({"containers": old}, {"containers": new}, SHAPE)
    by_name = {item["name"]: item for item in (*old, *new)}
    assert {item["name"]: item for item in merged["containers"]} == by_name
    assert len(merged["containers"]) == len(by_name)
    assert strategic_merge(merged, {"containers": new}, SHAPE) == merged
    names = [item["name"] for item in merged["containers"]]
    assert [name for name in names if name in {item["name"] for item in new}] == [
        item["name"] for item in new
    ]


@given(items, st.permutations("abcde"))
@settings(max_examples=60)
def test_a_full_order_is_applied(old, order):
    """Where the order names every item, the list comes out in that order."""
    patch = {"$setElementOrder/containers": [{"name": name} for name in order]}
    merged = strategic_merge({"containers": old}, patch, SHAPE)
    assert [item["name"] for item in merged["containers"]] == [
        name for name in order if name in {item["name"] for item in old}
    ]


@given(
    st.dictionaries(
        st.sampled_from("xyz"),
        st.integers(0, 3) | st.dictionaries(st.sampled_from("pq"), st.integers(), max_size=2),
        max_size=3,
    ),
    plain,
)
@settings(max_examples=100)
def test_without_lists_it_is_a_merge_patch(target, patch):
    """Without lists and directives a strategic merge patch is a merge patch."""
    assert same_json(strategic_merge(target, patch), merge_patch(target, patch))
