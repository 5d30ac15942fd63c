from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kubetide.units.patch import PatchError, json_patch, merge_diff, merge_patch, same_json

scalars = st.one_of(st.booleans(), st.integers(-2, 2), st.sampled_from(["", "a", "b"]), st.just(1.0))
keys = st.sampled_from(["a", "b", "c", "x/y", "m~n", "", "0"])
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=3)),
    max_leaves=8,
)
objects = st.dictionaries(keys, values, max_size=4)
with_nulls = st.recursive(
    st.one_of(scalars, st.none()), lambda inner: st.dictionaries(keys, inner, max_size=3), max_leaves=8
)


@pytest.mark.parametrize(
    ("target", "patch", "expected"),
    [
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        (["a", "b"], ["c", "d"], ["c", "d"]),
        ({"a": "b"}, ["c"], ["c"]),
        ({"a": "foo"}, None, None),
        ({"a": "foo"}, "bar", "bar"),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_merge_patch_follows_the_rfcs_table(target, patch, expected):
    """The example table of RFC 7386, appendix A, comes out as printed."""
    assert same_json(merge_patch(target, patch), expected)


@given(objects, with_nulls)
@settings(max_examples=100)
def test_merge_patch_changes_no_input_and_is_idempotent(target, patch):
    """Inputs stay as they were, and applying a patch twice is applying it once."""
    before = copy.deepcopy((target, patch))
    once = merge_patch(target, patch)
    assert same_json(merge_patch(once, patch), once)
    assert repr((target, patch)) == repr(before)


@given(objects, objects)
@settings(max_examples=100)
def test_the_difference_leads_from_old_to_new(old, new):
    """merge_diff is what merge_patch needs to turn old into new, and nothing when they are equal."""
    patch = merge_diff(old, new)
    assert same_json(merge_patch(old, patch), new)
    assert (patch == {}) is same_json(old, new)


def test_merge_patch_shares_what_it_does_not_touch():
    """Branches beside the changed path are the same objects in the result."""
    target = {"spec": {"template": {"big": list(range(9))}, "replicas": 1}, "status": {}}
    result = merge_patch(target, {"spec": {"replicas": 2}})
    assert result["spec"]["template"] is target["spec"]["template"]
    assert result["status"] is target["status"]
    assert merge_patch(target, {}) is target


@pytest.mark.parametrize(
    ("target", "ops", "expected"),
    [
        ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"foo": "bar", "baz": "qux"}),
        (
            {"foo": ["bar", "baz"]},
            [{"op": "add", "path": "/foo/1", "value": "qux"}],
            {"foo": ["bar", "qux", "baz"]},
        ),
        ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
        ({"foo": 1, "baz": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 1}),
        ({"foo": ["a", "b", "c"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["a", "c"]}),
        ({"foo": "bar"}, [{"op": "replace", "path": "/foo", "value": None}], {"foo": None}),
        (
            {"foo": {"waldo": "fred"}, "qux": {"corge": "grault"}},
            [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
            {"foo": {}, "qux": {"corge": "grault", "thud": "fred"}},
        ),
        ({"foo": [1, 2, 3]}, [{"op": "move", "from": "/foo/0", "path": "/foo/2"}], {"foo": [2, 3, 1]}),
        ({"a": {"b": 1}}, [{"op": "copy", "from": "/a", "path": "/c"}], {"a": {"b": 1}, "c": {"b": 1}}),
        ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
        ({"x/y": {"m~n": 1}}, [{"op": "replace", "path": "/x~1y/m~0n", "value": 2}], {"x/y": {"m~n": 2}}),
        ({"foo": 1}, [{"op": "replace", "path": "", "value": [1]}], [1]),
        ({"": 1}, [{"op": "remove", "path": "/"}], {}),
        ({"a": 1}, [{"op": "move", "from": "/a", "path": "/a"}], {"a": 1}),
        ({"0": 1}, [{"op": "replace", "path": "/0", "value": 2}], {"0": 2}),
        ({"a": 1}, [{"op": "test", "path": "/a", "value": 1.0}], {"a": 1}),
        ({}, [], {}),
    ],
)
def test_json_patch_follows_the_rfcs_examples(target, ops, expected):
    """The examples of RFC 6902, appendix A, come out as printed."""
    before = copy.deepcopy(target)
    assert same_json(json_patch(target, ops), expected)
    assert same_json(target, before)


@pytest.mark.parametrize(
    ("target", "op", "part"),
    [
        ({}, {"op": "remove", "path": "/a"}, "there is nothing at /a to remove"),
        ({}, {"op": "replace", "path": "/a", "value": 1}, "there is nothing at /a to replace"),
        ({}, {"op": "add", "path": "/a/b", "value": 1}, "there is nothing at /a"),
        (
            [1],
            {"op": "add", "path": "/2", "value": 1},
            "index 2 in /2 is out of range: the array has 1 items",
        ),
        ([1], {"op": "remove", "path": "/1"}, "out of range"),
        ([1], {"op": "remove", "path": "/-"}, "'-' in /- is not an array index"),
        ([1], {"op": "remove", "path": "/00"}, "is not an array index"),
        ([1], {"op": "remove", "path": "/" + "9" * 5000}, "out of range"),
        ({"a": 1}, {"op": "add", "path": "/a/b", "value": 1}, "nothing at /a that could hold 'b'"),
        ({"a": True}, {"op": "test", "path": "/a", "value": 1}, "the value at /a differs"),
        ({"a": 1}, {"op": "test", "path": "/a"}, "needs a value"),
        ({}, {"op": "add", "path": "a", "value": 1}, "it starts with /"),
        ({}, {"op": "add", "path": "/~2", "value": 1}, "~ is written ~0"),
        ({}, {"op": "add", "value": 1}, "needs path"),
        ({}, {"op": "copy", "path": "/a"}, "needs from"),
        ({"a": {}}, {"op": "move", "from": "/a", "path": "/a/b"}, "cannot move /a into itself"),
        ({}, {"op": "merge", "path": "/a"}, "unknown op 'merge'"),
        ({}, 7, "an operation is an object"),
    ],
)
def test_a_bad_operation_is_named_by_its_index(target, op, part):
    """An operation that cannot be applied is refused with its index, and nothing is changed."""
    first = {"op": "test", "path": "", "value": copy.deepcopy(target)}
    with pytest.raises(PatchError) as caught:
        json_patch(target, [first, op])
    assert caught.value.index == 1
    assert str(caught.value).startswith("operation 1: ")
    assert part in str(caught.value)


def test_a_patch_that_is_no_list_is_refused():
    """A JSON patch is a list, so a merge patch sent by mistake is named."""
    with pytest.raises(PatchError, match="list of operations, not dict"):
        json_patch({}, {"a": 1})


@given(objects, keys, values)
@settings(max_examples=100)
def test_add_then_remove_restores(target, key, value):
    """Adding a new member and removing it again gives the document back."""
    pointer = "/" + key.replace("~", "~0").replace("/", "~1")
    added = json_patch(target, [{"op": "add", "path": pointer, "value": value}])
    assert same_json(added[key], value)
    if key not in target:
        assert same_json(json_patch(added, [{"op": "remove", "path": pointer}]), target)
