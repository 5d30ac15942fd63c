"""Tests are dealt out so that each control plane is started once."""

from __future__ import annotations

from itertools import pairwise
from types import SimpleNamespace

from tests.grouping import PLANES_OF, group_of, put_in_order


def test_tests_that_use_a_plane_are_in_a_group_of_one(request):
    """All tests of this run with a plane's fixture run on the worker that has the plane."""
    astray = {
        item.nodeid.partition("::")[0]
        for item in request.session.items
        for plane in PLANES_OF.keys() & set(item.fixturenames)
        if group_of(item.nodeid).partition(",")[0] != plane
    }
    assert astray == set(), "list each under the plane that it uses, and no other, in tests/grouping.py"


def test_a_module_stays_together_unless_its_tests_take_long():
    """Tests of a plane share its group, quick ones that of their module; long ones are dealt out one by one."""
    assert group_of("tests/plane/test_whole_loop.py::test_a") == "audited"
    assert group_of("tests/units/test_quantity.py::test_a[1]") == "tests/units/test_quantity.py"
    assert group_of("tests/conformance/test_nodes.py::test_a") == "tests/conformance/test_nodes.py::test_a"


def item(nodeid, *, slow=True):
    """What the order reads of a test."""
    return SimpleNamespace(nodeid=nodeid, get_closest_marker=lambda name: (name == "slow" and slow) or None)


def test_two_groups_that_wait_begin_and_the_others_come_between_those_that_compute():
    """Every test is dealt out once, those of a group side by side, and quick ones at the end."""
    planes = ["whole_loop", "kwok", "scheduling", "vpa_modes", "informers", "recorded"]
    names = [
        *(f"tests/units/test_{at}.py::test_a" for at in range(3)),
        *(f"tests/soak/test_soak.py::test_a[{at}]" for at in range(20)),
        *(f"tests/plane/test_{name}.py::test_{which}" for name in planes for which in "ab"),
    ]
    items = [item(name, slow="units" not in name) for name in names]
    put_in_order(items)
    dealt = [one.nodeid for one in items]
    assert sorted(dealt) == sorted(names)
    assert [name.split("_", 1)[1] for name in dealt[:4:2]] == ["whole_loop.py::test_a", "kwok.py::test_a"]
    assert dealt[-3:] == names[:3]
    at = [number for number, name in enumerate(dealt) if "/plane/" in name and name.endswith("test_a")][2:]
    assert all(later - earlier > 3 for earlier, later in pairwise(at))
    assert all(dealt[number + 1] == dealt[number][:-1] + "b" for number in at)
