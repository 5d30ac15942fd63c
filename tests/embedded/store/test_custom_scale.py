"""Fields that the scale subresource of a custom kind cannot read; the sentences are kube-apiserver v1.36.2's."""

from __future__ import annotations

import pytest

from kubetide.embedded.apiserver.store.custom_kinds.custom_scale import scale_faults
from kubetide.objects.definition import ScalePaths

PATHS = ScalePaths(
    spec_replicas_path=".spec.count",
    status_replicas_path=".status.count",
    label_selector_path=".status.selector",
)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        ({}, None),
        ({"spec": {}, "status": {"count": 1, "selector": "(("}}, None),
        ({"spec": {"count": (1 << 31) - 1}}, None),
        ({"spec": {"count": -1}}, ".spec.count: Invalid value: -1: should be a non-negative integer"),
        (
            {"spec": {"count": 3_000_000_000}},
            ".spec.count: Invalid value: 3000000000: should be less than or equal to 2147483647",
        ),
        ({"status": {"count": -1}}, ".status.count: Invalid value: -1: should be a non-negative integer"),
        (
            {"spec": {"count": "x"}},
            ".spec.count: Invalid value: 0: .spec.count accessor error: x is of the type string, expected int64",
        ),
        (
            {"spec": {"count": 1.5}},
            ".spec.count: Invalid value: 0: .spec.count accessor error: 1.5 is of the type float64, expected int64",
        ),
        (
            {"spec": {"count": True}},
            ".spec.count: Invalid value: 0: .spec.count accessor error: true is of the type bool, expected int64",
        ),
        (
            {"spec": {"count": None}},
            ".spec.count: Invalid value: 0: .spec.count accessor error: <nil> is of the type <nil>, expected int64",
        ),
        (
            {"spec": {"count": {"a": [1, "b"], "A": {}}}},
            (
                ".spec.count: Invalid value: 0: .spec.count accessor error: map[A:map[] a:[1 b]] is of the type "
                "map[string]interface {}, expected int64"
            ),
        ),
        (
            {"spec": "x"},
            (
                ".spec.count: Invalid value: 0: .spec.count accessor error: x is of the type string, "
                "expected map[string]interface{}"
            ),
        ),
        (
            {"status": {"selector": 3}},
            (
                '.status.selector: Invalid value: "": .status.selector accessor error: 3 is of the type int64, '
                "expected string"
            ),
        ),
    ],
)
def test_paths_that_cannot_be_read(obj, expected):
    """A value of the wrong type or out of range is a fault of its path; one that is not there is none."""
    assert [str(fault) for fault in scale_faults(obj, PATHS)] == ([expected] if expected else [])
    assert not scale_faults(obj, None)
